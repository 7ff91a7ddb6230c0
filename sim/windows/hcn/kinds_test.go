package hcn

import (
	"errors"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Every kind of the wire protocol has a row in objectKinds, and package hns makes and
// deletes objects of its kind.
func TestObjectKinds(t *testing.T) {
	svc := hns.NewService(builds.MustLookup("20348"), hns.Options{Node: "win1"})
	seen := map[hns.Kind]Kind{}
	for k := Network; k < computeSystem; k++ {
		row := objectKinds[k]
		if row == nil {
			t.Errorf("kind %s has no row in objectKinds (kinds.go)", kindNames[k])
			continue
		}
		if other, twice := seen[row.hnsKind()]; twice {
			t.Errorf("kinds %s and %s are one in package hns", kindNames[k], kindNames[other])
		}
		seen[row.hnsKind()] = k
		unsupported := func(err error) bool {
			var e *hns.Error
			return errors.As(err, &e) && e.Code == hns.ErrRequestUnsupported.Code
		}
		if _, err := svc.Create(row.hnsKind(), []byte("{}")); unsupported(err) {
			t.Errorf("hns.Service.Create (call.go): %v", err)
		}
		if err := svc.Delete(row.hnsKind(), "00000000-0000-0000-0000-000000000001"); unsupported(err) {
			t.Errorf("hns.Service.Delete (call.go): %v", err)
		}
	}
}
