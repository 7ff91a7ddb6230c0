package nodeconf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

func TestReserved(t *testing.T) {
	memory, cpu := map[string]string{"resource": "memory", "amount": "2G"}, map[string]string{"resource": "cpu", "amount": "1m"}
	const config = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	for _, tc := range []struct {
		name, test string
		args       map[string]string
		text       string
		want       []string
	}{
		{"below", "reserved-below", memory, `C:\k\kubelet.exe --v=4 --system-reserved=memory=500Mi`, []string{"--system-reserved 500Mi"}},
		{"2Gi is more than 2 GB", "reserved-below", memory, `C:\k\kubelet.exe --v=4 --system-reserved=memory=2Gi`, nil},
		{"2 GB", "reserved-below", memory, `C:\k\kubelet.exe --v=4 --system-reserved=memory=2G`, nil},
		{"both together", "reserved-below", memory, `C:\k\kubelet.exe --v=4 --kube-reserved=cpu=1,memory=1Gi --system-reserved=memory=1Gi`, nil},
		{"none", "reserved-below", memory, `C:\k\kubelet.exe --v=4 --system-reserved=cpu=1`, []string{" no"}},
		{"none, but there is a file", "reserved-below", memory, `C:\k\kubelet.exe --v=4 --config=C:\k\config.yaml`, nil},
		{"too little beside a file", "reserved-below", memory, `C:\k\kubelet.exe --v=4 --config=C:\k\config.yaml --system-reserved=memory=1Gi`,
			[]string{"--system-reserved 1Gi"}},
		{"any CPU will do", "reserved-below", cpu, `C:\k\kubelet.exe --v=4 --kube-reserved=cpu=50m`, nil},
		{"no CPU", "reserved-below", cpu, `C:\k\kubelet.exe --v=4 --kube-reserved=memory=2Gi`, []string{" no"}},
		{"a file with too little", "reserved-below", memory, config + "systemReserved: {memory: 500Mi}\nkubeReserved: {memory: 1Gi}\n",
			[]string{"systemReserved.memory 1524Mi"}},
		{"a file with enough", "reserved-below", memory, config + "systemReserved: {memory: 2Gi}\n", nil},
		{"a file with none says nothing", "reserved-below", memory, config + "maxPods: 60\n", nil},

		{"no priority", "priority-not-raised", nil, `C:\k\kubelet.exe --v=4`, []string{" NORMAL_PRIORITY_CLASS"}},
		{"a low priority", "priority-not-raised", nil, `C:\k\kubelet.exe --v=4 --windows-priorityclass=IDLE_PRIORITY_CLASS`,
			[]string{"--windows-priorityclass IDLE_PRIORITY_CLASS"}},
		{"a raised priority", "priority-not-raised", nil, `C:\k\kubelet.exe --v=4 --windows-priorityclass=HIGH_PRIORITY_CLASS`, nil},
		{"a class that does not exist has a rule of its own", "priority-not-raised", nil, `C:\k\kubelet.exe --v=4 --windows-priorityclass=FAST`,
			nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := "start.ps1"
			if strings.HasPrefix(tc.text, "apiVersion") {
				file = "kubelet.yaml"
			}
			subjects, _, mistakes := Read(file, []byte(tc.text))
			if len(mistakes) > 0 {
				t.Fatal(mistakes)
			}
			i := slices.IndexFunc(Tests(), func(x subject.Test) bool { return x.Name == tc.test })
			if i < 0 {
				t.Fatalf("Tests has no %s", tc.test)
			}
			test, looked := Tests()[i], false
			var got []string
			for _, s := range subjects {
				if !slices.Contains(test.On, s.On) {
					continue
				}
				looked = true
				for _, h := range test.Find(&subject.Context{}, s, tc.args) {
					got = append(got, fmt.Sprintf("%s %s", h.Field, h.Vars["reserved"]+h.Vars["priority"]))
				}
			}
			if !looked {
				t.Fatal("nothing was read")
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A part of the line that is not seen may reserve enough.
func TestReservedWhereALineIsNotSeenAsAWhole(t *testing.T) {
	subjects, _, _ := Read("start.ps1", []byte("$args = Get-Arguments\n& C:\\k\\kubelet.exe --v=4 @args\n"))
	for _, s := range subjects {
		if c, ok := s.Value.(*commandLine); !ok || !c.incomplete {
			continue
		}
		for _, test := range reservedTests {
			for _, h := range test.Find(&subject.Context{}, s, map[string]string{"resource": "memory", "amount": "2G"}) {
				t.Errorf("%s: %v", test.Name, h.Vars)
			}
		}
		return
	}
	t.Fatal("the reader sees no incomplete command line in this script")
}
