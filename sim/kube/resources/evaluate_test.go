package resources

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

type (
	m    = map[string]string
	want = map[string]string
)

const starts = `kubelet.exe --cgroups-per-qos=false --enforce-node-allocatable="" `

func TestNodeAllocatable(t *testing.T) {
	node := m{"cpu": "4", "memory": "16Gi"}
	for _, tc := range []struct {
		name, version string
		capacity      m
		kubelet       string
		want          want
	}{
		{"nothing reserved: the default threshold counts, 100Mi", "1.20", node, starts,
			want{"allocatable.cpu": "4", "allocatable.memory": "16284Mi", "eviction.memory": "100Mi"}},
		{"500Mi from 1.31 on", "1.31", node, starts, want{"allocatable.memory": "15884Mi", "eviction.memory": "500Mi"}},
		{"both reservations and the threshold", "1.20", node, starts +
			"--kube-reserved=cpu=100m,memory=1Gi --system-reserved=cpu=400m,memory=2Gi --eviction-hard=memory.available<500Mi",
			want{"allocatable.cpu": "3500m", "allocatable.memory": "12812Mi"}},
		{"flags with a space and quotes", "1.20", node, starts + `--system-reserved "memory=2Gi" --eviction-hard "memory.available<1Gi"`,
			want{"allocatable.memory": "13Gi"}},
		{"no threshold", "1.20", node, starts + `--eviction-hard=""`, want{"allocatable.memory": "16Gi", "eviction.memory": "none"}},
		{"0% switches it off", "1.20", node, starts + `--eviction-hard=memory.available<0%`,
			want{"allocatable.memory": "16Gi", "eviction.memory": "none"}},
		{"thresholds that do not count here", "1.20", node, starts +
			`--eviction-hard= --experimental-allocatable-ignore-eviction --eviction-soft=memory.available<4Gi`, want{"allocatable.memory": "16Gi"}},
		{"ignored on request", "1.20", node, starts + `--experimental-allocatable-ignore-eviction=true`,
			want{"allocatable.memory": "16Gi", "eviction.memory": "100Mi"}},
		// The 32-bit 0.1 of the kubelet is a little above a tenth: 1717986944 bytes, not 1717986918.
		{"a percentage", "1.20", node, starts + `--eviction-hard=memory.available<10%`,
			want{"allocatable.memory": "15461882240", "eviction.memory": "1717986944"}},
		{"a percentage of the commit limit is not known", "1.31", node, starts + `--eviction-hard=memory.available<10%`,
			want{"allocatable.memory": "15461882240", "eviction.memory": unknown}},
		{"a percentage of the commit limit", "1.31", m{"memory": "16Gi", "commit-limit": "32Gi"}, starts + `--eviction-hard=memory.available<50%`,
			want{"allocatable.memory": "8Gi", "eviction.memory": "16Gi"}},
		{"the disk has a default threshold of a tenth", "1.20", m{"ephemeral-storage": "128000"}, starts,
			want{"allocatable.ephemeral-storage": "115200"}},
		{"never below zero", "1.20", node, starts + "--system-reserved=memory=20Gi,cpu=8",
			want{"allocatable.memory": "0", "allocatable.cpu": "0"}},
		{"pods by number", "1.20", node, starts + "--max-pods=60", want{"allocatable.pods": "60"}},
		{"reserved CPUs override, and are not modelled", "1.20", node, starts + "--reserved-cpus=0-1", want{"allocatable.cpu": unknown}},
		{"one processor group before 1.21", "1.20", m{"cpu": "96"}, starts, want{"capacity.cpu": "64", "allocatable.cpu": "64"}},
		{"all groups since", "1.21", m{"cpu": "96"}, starts, want{"capacity.cpu": "96", "allocatable.cpu": "96"}},
	} {
		t.Run(tc.name, func(t *testing.T) { evaluate(t, tc.version, tc.capacity, tc.kubelet, nil, tc.want) })
	}
}

func TestKubeletOnItsOwn(t *testing.T) {
	for _, tc := range []struct {
		name, version, kubelet string
		want                   want
	}{
		{"up to 1.30 the defaults are refused", "1.30", "kubelet.exe",
			want{"kubelet.starts": "false", "kubelet.refuses": "--cgroups-per-qos, --enforce-node-allocatable", "kubelet.ignores": "none"}},
		{"since 1.31 they are passed over", "1.31", "kubelet.exe",
			want{"kubelet.starts": "true", "kubelet.refuses": "none", "kubelet.ignores": "--cgroups-per-qos, --enforce-node-allocatable"}},
		{"switched off", "1.20", starts, want{"kubelet.starts": "true", "kubelet.refuses": "none"}},
		{"none is a value, and refused", "1.30", "kubelet.exe --cgroups-per-qos=false --enforce-node-allocatable=none",
			want{"kubelet.refuses": "--enforce-node-allocatable"}},
		{"none is passed over in silence", "1.31", "kubelet.exe --cgroups-per-qos=false --enforce-node-allocatable none",
			want{"kubelet.ignores": "none"}},
		{"priority by default", "1.20", starts, want{"kubelet.priority": "NORMAL_PRIORITY_CLASS"}},
		{"priority as asked", "1.17", starts + "--windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS",
			want{"kubelet.priority": "ABOVE_NORMAL_PRIORITY_CLASS", "kubelet.starts": "true"}},
		{"no such class", "1.20", starts + "--windows-priorityclass=ABOVE_NORMAL",
			want{"kubelet.refuses": "--windows-priorityclass", "kubelet.starts": "false"}},
		{"no such flag before 1.17", "1.16", starts + "--windows-priorityclass=HIGH_PRIORITY_CLASS", want{"kubelet.starts": "false"}},
		{"no eviction before 1.31", "1.30", starts + "--eviction-hard=memory.available<1Gi",
			want{"evicts.memory": "false", "condition.memory-pressure": "false"}},
		{"eviction since", "1.31", starts, want{"evicts.memory": "true", "condition.memory-pressure": "true"}},
		{"a soft threshold is enough", "1.31", starts + "--eviction-hard= --eviction-soft=memory.available<2Gi", want{"evicts.memory": "true"}},
		{"no threshold, no eviction", "1.31", starts + "--eviction-hard=nodefs.available<10%", want{"evicts.memory": "false"}},
		{"a line goes on", "1.20", "kubelet.exe `\n  --cgroups-per-qos=false `\n  --enforce-node-allocatable=''", want{"kubelet.starts": "true"}},
	} {
		t.Run(tc.name, func(t *testing.T) { evaluate(t, tc.version, nil, tc.kubelet, nil, tc.want) })
	}
}

func TestContainer(t *testing.T) {
	for _, tc := range []struct {
		name, version, cpus string
		container           m
		want                want
	}{
		// TestCalculateCPUMaximum of pkg/kubelet/kuberuntime/kuberuntime_container_windows_test.go, 1.36.
		{"max range when same amount", "1.36", "1", m{"limits.cpu": "1"}, want{"cpu.maximum": "10000"}},
		{"percentage calculation is working as intended", "1.36", "96", m{"limits.cpu": "94"}, want{"cpu.maximum": "9791"}},
		{"half range when half amount", "1.36", "2", m{"limits.cpu": "1"}, want{"cpu.maximum": "5000"}},
		{"max range when more requested than available", "1.36", "1", m{"limits.cpu": "2"}, want{"cpu.maximum": "10000"}},
		{"min range when less than minimum", "1.36", "100", m{"limits.cpu": "1m"}, want{"cpu.maximum": "1"}},

		{"from 1.18 a limit is a hard cap", "1.18", "4", m{"limits.cpu": "500m"},
			want{"cpu.maximum": "1250", "cpu.shares": "unset", "cpu.cap": "500m"}},
		{"with containerd too", "1.20", "4", m{"limits.cpu": "500m", "runtime": "containerd"},
			want{"cpu.maximum": "1250", "cpu.shares": "unset", "cpu.cap": "500m"}},
		{"up to 1.17 the weight wins", "1.17", "4", m{"limits.cpu": "500m"},
			want{"cpu.maximum": "1250", "cpu.shares": "5000", "cpu.cap": "none"}},
		{"the weight is the same for all", "1.14", "4", m{"limits.cpu": "4"}, want{"cpu.maximum": "10000", "cpu.shares": "5000"}},
		{"above what the node has it grows", "1.14", "4", m{"limits.cpu": "6"}, want{"cpu.shares": "7500"}},
		{"up to 10000", "1.14", "4", m{"limits.cpu": "64"}, want{"cpu.shares": "10000"}},
		{"a request is a weight without a limit", "1.17", "1", m{"requests.cpu": "1500m"},
			want{"cpu.maximum": "unset", "cpu.shares": "7500", "cpu.cap": "none"}},
		{"a request is nothing since 1.18", "1.18", "1", m{"requests.cpu": "1500m"},
			want{"cpu.maximum": "unset", "cpu.shares": "unset", "cpu.cap": "none"}},
		{"containerd with both is not for 1.17", "1.17", "4", m{"limits.cpu": "500m", "runtime": "containerd"}, want{"cpu.cap": unknown}},
		{"a Hyper-V container has processors", "1.17", "4", m{"limits.cpu": "1500m", "isolation": "hyperv"},
			want{"cpu.count": "2", "cpu.maximum": "7500", "cpu.shares": "3746", "cpu.cap": unknown}},
		{"and in 1.20 no weight", "1.20", "4", m{"limits.cpu": "1500m", "isolation": "hyperv"}, want{"cpu.count": "2", "cpu.shares": "unset"}},
		{"a process container has no count", "1.17", "4", m{"limits.cpu": "1500m"}, want{"cpu.count": "unset"}},
		{"limits look at one processor group before 1.27", "1.26", "96", m{"limits.cpu": "32"}, want{"cpu.maximum": "5000"}},
		{"at all since", "1.27", "96", m{"limits.cpu": "32"}, want{"cpu.maximum": "3333"}},

		{"dockershim and percents", "1.17", "4", m{"limits.cpu": "500m"}, want{"docker.cpu-percent": "1250", "docker.nano-cpus": "unset"}},
		{"dockershim and billionths", "1.18", "4", m{"limits.cpu": "500m"}, want{"docker.cpu-percent": "unset", "docker.nano-cpus": "500000000"}},

		{"memory", "1.36", "2", m{"limits.memory": "256Mi"}, want{"memory.limit": "268435456", "requests.memory": "256Mi"}},
		{"memory without a limit", "1.36", "2", m{"requests.memory": "256Mi"},
			want{"memory.limit": "unset", "requests.memory": "256Mi", "requests.cpu": "0"}},

		{"docker stops after 5 seconds", "1.20", "2", m{"terminationGracePeriodSeconds": "60"}, want{"stop.seconds": "5"}},
		{"containerd after the grace period", "1.25", "2", m{"terminationGracePeriodSeconds": "60"}, want{"stop.seconds": "60"}},
		{"30 by default", "1.25", "2", m{"limits.cpu": "1"}, want{"stop.seconds": "30"}},
		{"containerd early on", "1.20", "2", m{"runtime": "containerd"}, want{"stop.seconds": unknown}},
	} {
		t.Run(tc.name, func(t *testing.T) { evaluate(t, tc.version, m{"cpu": tc.cpus}, starts, tc.container, tc.want) })
	}
}

func TestFits(t *testing.T) {
	node := m{"cpu": "4", "memory": "16Gi"}
	reserve := starts + "--system-reserved=memory=2Gi --eviction-hard=memory.available<500Mi"
	for _, tc := range []struct {
		name      string
		capacity  m
		kubelet   string
		container m
		want      string
	}{
		{"limits fill the node", node, reserve, m{"limits.memory": "1Gi"}, "13"},
		{"requests below limits fill it further than it can bear", node, reserve, m{"limits.memory": "1Gi", "requests.memory": "256Mi"}, "54"},
		{"CPU is what runs out", node, reserve, m{"limits.cpu": "1500m", "limits.memory": "1Gi"}, "2"},
		{"without numbers the number of pods is the bound", node, reserve, m{"runtime": "docker"}, "110"},
		{"no Windows node has huge pages", node, reserve, m{"limits.memory": "1Gi", "limits.hugepages-2Mi": "2Mi"}, "0"},
		{"zero of what nobody has", node, reserve, m{"limits.memory": "1Gi", "limits.hugepages-2Mi": "0"}, "13"},
		{"memory that is not given", m{"cpu": "4"}, reserve, m{"limits.memory": "1Gi"}, unknown},
		{"CPUs that are not modelled", node, reserve + " --reserved-cpus=0", m{"limits.cpu": "1"}, unknown},
	} {
		t.Run(tc.name, func(t *testing.T) { evaluate(t, "1.20", tc.capacity, tc.kubelet, tc.container, want{"fits": tc.want}) })
	}
}

func evaluate(t *testing.T, version string, capacity m, kubelet string, container m, want want) {
	t.Helper()
	got, err := Evaluate(version, capacity, kubelet, container)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			t.Errorf("%s is %q, want %q", key, got[key], want[key])
		}
	}
}

// Every answer is a key, and every key is an answer to something.
func TestKeysAreTheAnswers(t *testing.T) {
	seen := map[string]bool{}
	for _, version := range []string{"1.14", "1.20", "1.37"} {
		got, err := Evaluate(version, m{"cpu": "4", "memory": "16Gi", "ephemeral-storage": "1Gi"}, starts, m{"limits.cpu": "1"})
		if err != nil {
			t.Fatal(err)
		}
		for key := range got {
			seen[key] = true
		}
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, keyNames()) {
		t.Errorf("answers are %v, Keys lists %v", got, keyNames())
	}
	for _, k := range keys {
		if k.doc == "" {
			t.Errorf("%s has no explanation", k.name)
		}
	}
}

func TestBadInputIsToldAtOnce(t *testing.T) {
	_, err := Evaluate("1.20",
		m{"cpu": "4.5", "memory": "-1Gi", "disk": "1"},
		"kubelet --kubelet-reserve=memory=2Gi --system-reserved=memory --kube-reserved=gpu=1 --eviction-hard=memory.free<1Gi --eviction-soft memory.available<200% --max-pods many --cgroups-per-qos=maybe --enforce-node-allocatable",
		m{"limits.cpu": "much", "limits.": "1", "runtime": "rkt", "isolation": "none", "cpu": "1", "terminationGracePeriodSeconds": "-1"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		`"4.5" is not a number of processors`, `capacity memory: "-1Gi" is negative`, `no capacity "disk"`,
		"the kubelet does not have the flag --kubelet-reserve; write --kube-reserved", `--system-reserved: "memory": write resource=quantity`,
		`"gpu" cannot be reserved`,
		`there is no signal "memory.free"`, `"200%" is not a percentage`, `"many" is not a number of pods`, `"maybe" is neither true nor false`,
		"--enforce-node-allocatable needs a value",
		`limits.cpu: "much" is not a quantity`, "container limits.:", `"rkt" is neither docker nor containerd`,
		`"none" is neither process nor hyperv`, "container cpu: there are requests.NAME", `"-1" is not a number of seconds`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %s:\n%v", part, err)
		}
	}
	for _, tc := range []struct{ version, key, value, part string }{
		{"1.13", "", "", "1.14 to 1.37"}, {"1.38", "", "", "1.14 to 1.37"}, {"2.20", "", "", "1.14 to 1.37"}, {"", "", "", "1.14 to 1.37"},
		{"1.24", "runtime", "docker", "do not have dockershim"}, {"1.21", "isolation", "hyperv", "do not pass Hyper-V isolation"},
	} {
		container := m{}
		if tc.key != "" {
			container[tc.key] = tc.value
		}
		if _, err := Evaluate(tc.version, nil, "", container); err == nil || !strings.Contains(err.Error(), tc.part) {
			t.Errorf("%s %s=%s: %v", tc.version, tc.key, tc.value, err)
		}
	}
}

func TestPatchesAndPrefixes(t *testing.T) {
	for _, s := range []string{"1.20", "v1.20", "1.20.15", "v1.20.0-rc.1"} {
		if v, err := parseMinor(s); err != nil || v != 20 {
			t.Errorf("%s is %v, %v", s, v, err)
		}
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add("1.20", "4", "16Gi", starts+"--system-reserved=memory=2Gi", "500m", "hyperv")
	f.Add("1.14", "128", "9223372036854775807", "--eviction-hard=memory.available<99.9%", "9223372036854775807", "process")
	f.Add("1.36", "1", "1e18", "--kube-reserved=cpu=1e9,memory=1E --eviction-hard \"", "0.0000001", "")
	f.Fuzz(func(t *testing.T, version, cpu, memory, kubelet, limit, isolation string) {
		got, err := Evaluate(version, m{"cpu": cpu, "memory": memory}, kubelet,
			m{"limits.cpu": limit, "limits.memory": memory, "isolation": isolation})
		if err != nil {
			return
		}
		for key, value := range got {
			if value == "" && key != "kubelet.priority" {
				t.Errorf("%s is empty", key)
			}
			if strings.HasPrefix(value, "-") && strings.HasPrefix(key, "allocatable.") {
				t.Errorf("%s is %s", key, value)
			}
		}
	})
}
