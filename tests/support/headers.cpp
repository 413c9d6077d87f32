// Nothing but the precompiled headers of the test programs comes from here; a library needs a source.
