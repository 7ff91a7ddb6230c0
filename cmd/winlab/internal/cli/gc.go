package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// room is the heap, in bytes, up to which nothing is collected again: a run over all labs has
// 20 to 40 MB that live, and would go through them seventy times for garbage that needs less
// memory than the report at its end. The first collection comes at 32 MB, so that a verb that
// answers at once is done before and a small one stays small.
const room = 64 << 20

// collectLate lets the heap grow up to room, and from there on as always: by usual percent of
// what lives. Whoever sets GOGC decides.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	afterCollection(debug.SetGCPercent(800))
}

// afterCollection sets, after the next collection and each that follows, when another is due.
func afterCollection(usual int) {
	runtime.AddCleanup(new([16]byte), func(usual int) {
		afterCollection(usual)
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		debug.SetGCPercent(growth(live[0].Value.Uint64(), usual))
	}, usual)
}

// growth is by how many percent of live bytes a heap may grow before it is collected.
func growth(live uint64, usual int) int {
	if live == 0 {
		return 800
	}
	return int(max(uint64(usual), min(800, (room-min(room, live))*100/live)))
}
