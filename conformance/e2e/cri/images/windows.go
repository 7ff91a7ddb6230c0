package images

// Builds of Windows Server whose containers later hosts run without Hyper-V.
const (
	ltsc2019 = 17763
	ltsc2022 = 20348
	ltsc2025 = 26100
)

// compatible reports whether a Windows host runs containers of a build in process
// isolation. Until Windows Server 2022 the builds must be equal; from then on a host
// runs those of the long-term release before it and later ones up to its own.
//
// Sources: Microsoft, "Windows container version compatibility"; containerd/platforms
// platform_windows_compat.go (checkWindowsHostAndContainerCompat).
func compatible(host, container int) bool {
	switch {
	case host == container:
		return true
	case host < ltsc2022:
		return false
	}
	earliest := ltsc2022
	if host > ltsc2025 {
		earliest = ltsc2025
	}
	return earliest <= container && container <= host
}
