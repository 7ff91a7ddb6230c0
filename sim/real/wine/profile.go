package wine

import (
	"fmt"
	"strconv"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// buildValues are what programs read to learn on which Windows they run: Go's
// windows.RtlGetVersion and GetVersion (Wine answers them from these values), and
// the registry itself, as hcsshim's osversion, kubelet and cAdvisor read it.
func buildValues(b *builds.Build) []value {
	const (
		current = `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`
		session = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters`
	)
	v := b.Version
	number := strconv.Itoa(v.Build)
	values := []value{
		{current, "CurrentMajorVersionNumber", uint32(v.Major)},
		{current, "CurrentMinorVersionNumber", uint32(v.Minor)},
		{current, "CurrentBuild", number},
		{current, "CurrentBuildNumber", number},
		{current, "UBR", uint32(v.UBR)},
		// Windows says 6.3 here since version 10. Wine's RtlGetVersion, which hcsshim
		// and kubelet ask, takes major and minor from it (dlls/ntdll/version.c), and
		// nothing else reads it.
		{current, "CurrentVersion", fmt.Sprintf("%d.%d", v.Major, v.Minor)},
		{current, "CSDVersion", ""},
		{current, "ProductName", ProductName(b)},
		{current, "EditionID", "ServerDatacenter"},
		{current, "InstallationType", "Server Core"},
		{current, "ReleaseId", releaseID(b)},
		{`HKLM\SYSTEM\CurrentControlSet\Control\Windows`, "CSDVersion", uint32(0)},
		{`HKLM\SYSTEM\CurrentControlSet\Control\ProductOptions`, "ProductType", "ServerNT"},
		// kubelet's machine and boot identity (cAdvisor reads them); any constant
		// will do, and a constant makes two runs equal.
		{`HKLM\SYSTEM\HardwareConfig`, "LastConfig", "{00000000-0000-0000-0000-000000000001}"},
		{session, "BootId", uint32(1)},
	}
	if v.Build > 19041 {
		values = append(values, value{current, "DisplayVersion", b.Name})
	}
	return values
}

// ProductName is what a build calls itself: "Windows Server 2022 Datacenter". A
// semi-annual release does not have its number there.
func ProductName(b *builds.Build) string {
	if b.Channel == "LTSC" {
		return b.Product + " Datacenter"
	}
	return "Windows Server Datacenter"
}

// releaseID is what ReleaseId holds: the release's name until 2004, then always
// 2009 (DisplayVersion has the name since).
func releaseID(b *builds.Build) string {
	if b.Version.Build > 19041 {
		return "2009"
	}
	return b.Name
}
