package wine

import (
	"path/filepath"
	"strings"
)

// Path returns what Windows programs call a file or folder of this machine: Wine
// shows the root of the file system as drive Z. A relative path is taken from the
// current folder. A path that is one of Windows already stays as it is.
func Path(unix string) string {
	if isWindowsPath(unix) {
		return unix
	}
	if abs, err := filepath.Abs(unix); err == nil {
		unix = abs
	}
	return "Z:" + strings.ReplaceAll(unix, "/", `\`)
}

// isWindowsPath reports whether a path begins with a drive, "C:\".
func isWindowsPath(p string) bool {
	if len(p) < 3 || p[1] != ':' || (p[2] != '\\' && p[2] != '/') {
		return false
	}
	c := p[0] | 0x20
	return 'a' <= c && c <= 'z'
}
