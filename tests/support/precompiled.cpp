// Nothing but the precompiled header, which other targets use.
