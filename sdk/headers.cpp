// Nothing but the precompiled headers of the SDK and the plugins comes from here; a library needs a source.
