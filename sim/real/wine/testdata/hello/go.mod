module winlab.dev/hello

go 1.26.0
