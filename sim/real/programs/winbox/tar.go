package main

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// untar is tar.exe, which Windows has since Windows 10 1803 and Windows Server 2019
// (https://learn.microsoft.com/en-us/virtualization/community/team-blog/2017/20171219-tar-and-curl-come-to-windows),
// in the form "tar -xf FILE [-C DIR]": FILE may be "-", an archive that is not compressed. The real
// one is libarchive's bsdtar.
func untar(_ context.Context, s *system, args []string) int {
	file, dir := "", "."
	for i := 0; i < len(args); i++ {
		switch a := strings.TrimPrefix(args[i], "-"); {
		case file == "" && (a == "xf" || a == "xvf") && i+1 < len(args):
			i++
			file = args[i]
		case args[i] == "-C" && i+1 < len(args):
			i++
			dir = args[i]
		default:
			return s.complain(1, "winlab: tar here knows tar -xf FILE [-C DIR], and not %s", args[i])
		}
	}
	if file == "" {
		return s.complain(1, "tar.exe: Must specify one of -c, -r, -t, -u, -x")
	}
	in := s.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return s.complain(1, "tar.exe: Error opening archive: Failed to open '%s'", file)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	if err := extract(in, dir); err != nil {
		return s.complain(1, "tar.exe: %v", err)
	}
	return 0
}

// extract writes the files and folders of an archive below a folder, which must be there, and nothing
// outside of it.
func extract(in io.Reader, dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	t := tar.NewReader(bufio.NewReaderSize(in, 1<<16))
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(strings.TrimPrefix(h.Name, "./"))
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case tar.TypeReg:
			if err = root.MkdirAll(filepath.Dir(name), 0o755); err == nil {
				err = put(root, name, t, fs.FileMode(h.Mode).Perm())
			}
		default:
			err = errors.New("winlab: tar here makes files and folders, and " + h.Name + " is neither")
		}
		if err != nil {
			return err
		}
	}
}

func put(root *os.Root, name string, from io.Reader, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
