// Nothing but the precompiled headers of mutated sources comes from here; a library needs a source.
