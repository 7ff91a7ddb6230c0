module github.com/winlab-dev/winlab

go 1.26.8
