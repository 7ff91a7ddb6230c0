//go:build linux

package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Callers at once make an entry once; all get it whole.
func TestCacheMakesOnce(t *testing.T) {
	t.Setenv("WINLAB_CACHE", t.TempDir())
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dir, _, err := Entry(t.Context(), "group", "entry", func(tmp string) error {
				made.Add(1)
				return os.WriteFile(filepath.Join(tmp, "file"), []byte("x"), 0o644)
			})
			if err != nil {
				t.Error(err)
			} else if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "x" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

// An attempt that fails leaves nothing; the next one makes the entry. A caller
// whose context ends does not wait for another.
func TestCacheFailure(t *testing.T) {
	root := t.TempDir()
	t.Setenv("WINLAB_CACHE", root)
	broken := errors.New("broken")
	_, _, err := Entry(t.Context(), "g", "e", func(tmp string) error {
		_ = os.WriteFile(filepath.Join(tmp, "half"), nil, 0o644)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := Entry(ctx, "g", "e", func(string) error { t.Error("made twice"); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller in a hurry got %v", err)
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(root, "g")); len(entries) != 1 { // the lock
		t.Errorf("left: %v", entries)
	}
	dir, made, err := Entry(t.Context(), "g", "e", func(string) error { return nil })
	if err != nil || !made {
		t.Errorf("%v, %v", made, err)
	}

	// What was not used for long is forgotten, what is in use is not.
	old := filepath.Join(root, "g", ".making-old")
	if err := os.Mkdir(old, 0o755); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-2 * unused)
	for _, d := range []string{old, dir} {
		if err := os.Chtimes(d, past, past); err != nil {
			t.Fatal(err)
		}
	}
	if !touch(dir) {
		t.Error("the entry is not there")
	}
	RemoveUnused("g")
	if _, err := os.Stat(old); err == nil {
		t.Error("the remains of an old attempt are still there")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("an entry in use is gone")
	}
}
