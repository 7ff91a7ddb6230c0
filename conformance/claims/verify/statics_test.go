package verify

import (
	"context"
	"reflect"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/observed"
)

// A folder of a node that is read once for all checks gives what reading it for each does: no
// check changes what was read.
func TestFoldersOnce(t *testing.T) {
	l, err := claims.Load()
	if err != nil {
		t.Fatal(err)
	}
	const dir = "../../../fixtures/nodes"
	once, tried := newFolders(dir), 0
	for _, c := range l.Claims() {
		for i := range c.Checks {
			k := &c.Checks[i]
			if k.Doctor == nil {
				continue
			}
			tried++
			got, _ := tryStatic(context.Background(), l, c, k, once)
			want, _ := tryStatic(context.Background(), l, c, k, newFolders(dir))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s with folders read once\n%+v\neach read again\n%+v", c.ID, got, want)
			}
		}
	}
	if len(once.read) == 0 || tried <= len(once.read) {
		t.Errorf("%d checks look at %d folders: nothing is read twice", tried, len(once.read))
	}
	for name, n := range once.read {
		again, err := observed.Read(context.Background(), dir+"/"+name)
		if err != nil || !reflect.DeepEqual(n, again) {
			t.Errorf("%s is not what it was when it was read (%v)", name, err)
		}
	}
}
