"""Code shared by all parts of the package: compiling, checks of input, files, progress, threads, lazy names."""
