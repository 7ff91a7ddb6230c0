//go:build linux

package wine

import (
	"errors"
	"strings"
	"testing"
)

// Where Wine is not there or does not work, one line says why.
func TestFindSaysWhy(t *testing.T) {
	if _, err := Find(); err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("not one line: %v", err)
	}
	t.Setenv("WINLAB_WINE", "/bin/false")
	_, err := Find()
	if !errors.Is(err, errNoWine) || !strings.Contains(err.Error(), "/bin/false") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a Wine that fails: %v", err)
	}
}
