package wine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Wine is an installed Wine that can run 64-bit programs.
type Wine struct {
	// loader and server are the programs wine64 and wineserver. They are the
	// binaries themselves where a distribution has scripts around them: a
	// script would be one more process between us and the program.
	loader, server string
	// version is what the loader says about itself, "wine-8.0 (Debian 8.0~repack-4)".
	version string
}

// errNoWine begins the errors of [Find], which say in one line why Wine cannot be used.
var errNoWine = errors.New("Wine is not available")

// Find looks for Wine: the loader named by WINLAB_WINE, then where Debian and
// Ubuntu, then where WineHQ's packages put it, then wine64 and wine on PATH.
func Find() (*Wine, error) {
	switch {
	case runtime.GOOS != "linux":
		return nil, fmt.Errorf("%w: winlab runs Windows programs on Linux only", errNoWine)
	case runtime.GOARCH != "amd64":
		return nil, fmt.Errorf("%w: the programs are built for amd64, this machine is %s", errNoWine, runtime.GOARCH)
	}
	loader := os.Getenv("WINLAB_WINE")
	if loader == "" {
		loader = firstExecutable("/usr/lib/wine/wine64", "/usr/lib/wine/wine", "/opt/wine-stable/bin/wine64", "/opt/wine-stable/bin/wine",
			"/opt/wine-staging/bin/wine64", "/opt/wine-staging/bin/wine", onPath("wine64"), onPath("wine"))
	}
	if loader == "" {
		return nil, fmt.Errorf("%w: neither wine64 nor wine is installed; on Debian or Ubuntu run \"make wine\"", errNoWine)
	}
	dir := filepath.Dir(loader)
	server := firstExecutable(os.Getenv("WINESERVER"), filepath.Join(dir, "wineserver64"), filepath.Join(dir, "wineserver"),
		"/usr/lib/wine/wineserver64", onPath("wineserver"))
	if server == "" {
		return nil, fmt.Errorf("%w: there is no wineserver for %s; set WINESERVER to it", errNoWine, loader)
	}
	w := &Wine{loader: loader, server: server}
	cmd := exec.Command(loader, "--version")
	cmd.Env = w.env("/nonexistent") // only its name is looked at
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s --version: %v", errNoWine, loader, err)
	}
	w.version = strings.TrimSpace(string(out))
	return w, nil
}

// firstExecutable returns the first of the paths that is an executable file.
func firstExecutable(paths ...string) string {
	for _, p := range paths {
		if p == "" {
			continue
		}
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p
		}
	}
	return ""
}

func onPath(name string) string {
	p, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return p
}

// env is the environment of every process of Wine: nothing of the caller's own but
// the way to its programs, so that what a Windows program sees does not depend on
// the machine. No DISPLAY: nothing here has a window. HOME is in the prefix: Wine
// links the folders of a user to it.
func (w *Wine) env(prefix string, overrides ...string) []string {
	off := []string{
		"winemenubuilder.exe=d", // would put menu entries into the user's desktop
		"mscoree=d", "mshtml=d", // would ask to download Mono and Gecko
	}
	path := os.Getenv("PATH")
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	return []string{
		"PATH=" + path,
		"LC_ALL=C.UTF-8",
		"HOME=" + filepath.Join(prefix, "home"),
		"WINEPREFIX=" + prefix,
		"WINEARCH=win64",
		"WINELOADER=" + w.loader,
		"WINESERVER=" + w.server,
		"WINEDEBUG=-all",
		"WINEDLLOVERRIDES=" + strings.Join(append(off, overrides...), ";"),
	}
}
