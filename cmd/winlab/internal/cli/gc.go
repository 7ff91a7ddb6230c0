package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

// collectLate puts the first garbage collection off until the heap has 32 MB, eight times what
// Go waits for: a verb that answers at once is done before. From the first collection on it is
// as always, so that a run needs no more memory. Whoever sets GOGC decides.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(800)
	first := new([16]byte)
	runtime.AddCleanup(first, func(percent int) { debug.SetGCPercent(percent) }, usual)
}
