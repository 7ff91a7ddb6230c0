// Package cache keeps what is slow to make, under a key of its inputs. It must not know
// what it keeps.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Dir is where built programs and bare prefixes are kept: WINLAB_CACHE, or
// the folder winlab in the user's cache. It may be removed at any time when
// nothing runs.
func Dir() (string, error) {
	dir := os.Getenv("WINLAB_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no place for the cache: %w; set WINLAB_CACHE to a folder", err)
		}
		dir = filepath.Join(user, "winlab")
	}
	return filepath.Abs(dir)
}

// Key is the name of a cache entry: a hash over everything that its content
// depends on.
type Key struct{ parts [][2]string }

// Add adds a part; its name and value count.
func (k *Key) Add(name, value string) { k.parts = append(k.parts, [2]string{name, value}) }

// String is the name, 16 hexadecimal digits.
func (k *Key) String() string {
	h := sha256.New()
	for _, p := range k.parts {
		fmt.Fprintf(h, "%d %s %d %s\n", len(p[0]), p[0], len(p[1]), p[1])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Entry returns the folder of a cache entry and makes it if it is not there. Only
// one process makes an entry, others wait for it; the entry appears whole or not at
// all. made reports whether make was called. The error is that of make, of the file system
// or of the context.
func Entry(ctx context.Context, group, entry string, make func(tmp string) error) (dir string, made bool, err error) {
	root, err := Dir()
	if err != nil {
		return "", false, err
	}
	parent := filepath.Join(root, group)
	dir = filepath.Join(parent, entry)
	if touch(dir) {
		return dir, false, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", false, fmt.Errorf("the cache cannot be written: %w; set WINLAB_CACHE to another folder", err)
	}
	unlock, err := Lock(ctx, dir+".lock")
	if err != nil {
		return "", false, err
	}
	defer unlock()
	if touch(dir) {
		return dir, false, nil
	}
	tmp, err := os.MkdirTemp(parent, ".making-")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", false, err
	}
	if err := make(tmp); err != nil {
		return "", false, err
	}
	return dir, true, os.Rename(tmp, dir)
}

// Find returns the folder of a cache entry, and whether it is there.
func Find(group, entry string) (string, bool) {
	root, err := Dir()
	if err != nil {
		return "", false
	}
	dir := filepath.Join(root, group, entry)
	return dir, touch(dir)
}

// touch reports whether an entry is there, and notes that it has been used.
func touch(dir string) bool {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // only for RemoveUnused; a cache of somebody else may be read
	return true
}

// unused is how long an entry is kept that is not asked for.
const unused = 30 * 24 * time.Hour

// RemoveUnused removes what was not used for a long time: entries of older sources,
// and the remains of attempts that were killed.
func RemoveUnused(group string) {
	root, err := Dir()
	if err != nil {
		return
	}
	entries, _ := os.ReadDir(filepath.Join(root, group))
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && time.Since(info.ModTime()) > unused {
			_ = os.RemoveAll(filepath.Join(root, group, e.Name()))
		}
	}
}
