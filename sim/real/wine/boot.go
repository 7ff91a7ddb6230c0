package wine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// What makes the first program of a prefix as fast as others. Each first program of a
// Wine server runs wineboot.exe. Wine's own takes half a second on an idle machine and
// many where no DNS server answers, since it asks for the machine's name; what it
// finds out is the same in all copies of a prefix.

// bootProgram is the program that Wine runs before all others.
const bootProgram = "wineboot.exe"

// onlyOnDemand are values of the registry for services that nothing here needs. The two
// that stay (the drive letters' and the network tables') start when services.exe does.
func onlyOnDemand(h *hive) {
	const services = `[System\\CurrentControlSet\\Services\\`
	name := ""
	for i, l := range h.lines {
		if strings.HasPrefix(l, "[") {
			name = ""
			if rest, ok := cutPrefixFold(l, services); ok {
				name, _, _ = strings.Cut(strings.ToLower(rest), "]")
			}
			continue
		}
		if _, ok := cutPrefixFold(l, `"Start"=dword:`); !ok || name == "" {
			continue
		}
		switch name {
		case "mountmgr", "nsiproxy":
		case "winebus", "wineusb", "winehid": // game pads; Plug and Play would start them
			h.lines[i] = `"Start"=dword:00000004` // SERVICE_DISABLED
		default:
			h.lines[i] = `"Start"=dword:00000003` // SERVICE_DEMAND_START
		}
	}
}

// prepareRegistry changes the files of a prefix that Wine has just made.
func prepareRegistry(dir string, fast bool) error {
	machine, user := filepath.Join(dir, "system.reg"), filepath.Join(dir, "user.reg")
	h, err := readHive(machine)
	if err != nil {
		return err
	}
	u, err := readHive(user)
	if err != nil {
		return err
	}
	if fast {
		onlyOnDemand(h)
	}
	// It has the name of this machine's user and goes before the environment.
	u.remove("Volatile Environment")
	return errors.Join(h.write(machine), u.write(user))
}

// users are the names of users that have a folder in each prefix.
var users = []string{"ContainerAdministrator", "ContainerUser", "Administrator"}

// nameFolders gives the names to the folder of the one user that a prefix has.
func nameFolders(dir string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	own := slices.IndexFunc(all, func(e fs.DirEntry) bool { return e.IsDir() && e.Name() != "Public" })
	if own < 0 {
		return fmt.Errorf("Wine has made no folder for the user in %s", dir)
	}
	for _, name := range users {
		if err := os.Symlink(all[own].Name(), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// UserEnv are the variables by which a program learns its user's name: ContainerUser,
// ContainerAdministrator, or another that gets a folder of its own when a program makes one.
// In a container the names belong to the domain "User Manager".
func UserEnv(name string) []string {
	profile := `\users\` + name
	return []string{
		"USERNAME=" + name, "USERDOMAIN=User Manager",
		"USERPROFILE=C:" + profile, "HOMEDRIVE=C:", "HOMEPATH=" + profile,
		"APPDATA=C:" + profile + `\AppData\Roaming`, "LOCALAPPDATA=C:" + profile + `\AppData\Local`,
	}
}

// nameValues are the values of the registry that hold a machine's name; "" is this one's.
// The NetBIOS name is its first 15 characters in capitals (MS-NBTE and the documentation of
// SetComputerNameEx).
func nameValues(host string) ([]value, error) {
	if host == "" {
		var err error
		if host, err = os.Hostname(); err != nil {
			return nil, err
		}
	}
	host, domain, _ := strings.Cut(host, ".")
	short := strings.ToUpper(host)
	if len(short) > 15 {
		short = short[:15]
	}
	const control = `HKLM\SYSTEM\CurrentControlSet\Control\ComputerName\`
	const tcpip = `HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`
	return []value{
		{control + "ComputerName", "ComputerName", short},
		{control + "ActiveComputerName", "ComputerName", short},
		{tcpip, "Hostname", host},
		{tcpip, "Domain", domain},
	}, nil
}

// processor says which processors this machine has, as far as a program can notice.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	var all []string
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(line, ":"); slices.Contains([]string{"vendor_id", "cpu family", "model", "model name", "stepping", "flags"},
			strings.TrimSpace(name)) {
			all = append(all, line)
		}
		if line == "\n" {
			break // one stands for all
		}
	}
	return fmt.Sprint(runtime.NumCPU(), all)
}
