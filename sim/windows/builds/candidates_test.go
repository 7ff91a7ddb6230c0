package builds

import (
	"math/rand"
	"strings"
	"testing"
)

func candidates(t *testing.T, known ...string) string {
	t.Helper()
	all, err := Candidates(known)
	if err != nil {
		return "error: " + err.Error()
	}
	var s []string
	for _, c := range all {
		s = append(s, c.String())
	}
	return strings.Join(s, "; ")
}

func TestCandidates(t *testing.T) {
	for _, tt := range []struct{ known, want string }{
		{"10.0.17763.1432", "10.0.17763.1432"},
		{"17763.1432", "10.0.17763.1432"},
		{"10.0.18362", "10.0.18362"},
		{"10.0.18363", "10.0.18363 to 10.0.18363.1015; 10.0.18363.1016 and later revisions"},
		{"1909", "10.0.18363 to 10.0.18363.1015; 10.0.18363.1016 and later revisions"},
		{">=10.0.18363.1000 <10.0.18363.1020", "10.0.18363.1000 to 10.0.18363.1015; 10.0.18363.1016 to 10.0.18363.1019"},
		{">=10.0.18363.2000 <=10.0.19041.1", "10.0.18363.2000 and later revisions; 10.0.19041.1"},
		{"10.0.18363.5 19041.7", `error: "10.0.18363.5 19041.7" is not a Windows version`},
		{"10.0.15063", "error: no build that winlab knows is in "},
		{">=soon", `error: range ">=soon"`},
		{"", `error: "" is not a Windows version`},
	} {
		if got := candidates(t, tt.known); got != tt.want && !(strings.HasPrefix(tt.want, "error: ") && strings.HasPrefix(got, tt.want)) {
			t.Errorf("%q: %s, want %s", tt.known, got, tt.want)
		}
	}
	if got := candidates(t, "10.0.18362.7", "19041.8"); got != "10.0.18362.7; 10.0.19041.8" {
		t.Errorf("two: %s", got)
	}
	all, err := Candidates([]string{Unknown})
	if err != nil || len(all) < 20 || len(all) > 60 {
		t.Errorf("%d candidates, %v", len(all), err)
	}
	last := len(all) - 1
	for of, want := range map[string]string{
		Stretches(all, []int{0, 1, 2}):        "10.0.14393 to 10.0.17134",
		Stretches(all, []int{1, last}):        "10.0.16299 or " + all[last].String(),
		Stretches(all, []int{last - 1, last}): "10.0.26100",
	} {
		if of != want {
			t.Errorf("%s, want %s", of, want)
		}
	}
}

func TestOfProduct(t *testing.T) {
	for image, want := range map[string]string{
		"Windows Server 2019 Datacenter":                "10.0.17763",
		"Windows Server 2022 Datacenter: Azure Edition": "10.0.20348",
		"Windows Server 2022 Standard":                  "10.0.20348",
		"Windows Server 2019":                           "10.0.17763",
		"Windows Server 20190":                          "",
		"Windows Server Datacenter":                     "",
		"Ubuntu 22.04":                                  "",
		"":                                              "",
	} {
		if got := strings.Join(OfProduct(image), " "); got != want {
			t.Errorf("%q: %q, want %q", image, got, want)
		}
	}
}

// A build is like the candidate that stands for it: no bound of the table is overlooked.
func TestCandidatesStandForAll(t *testing.T) {
	all, err := Candidates([]string{Unknown})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewSource(1))
	for _, row := range table().rows {
		revisions := []int{1, 2, 99999}
		for range 400 {
			revisions = append(revisions, 1+r.Intn(9000))
		}
		for _, b := range table().bounds(row.Build, nil) {
			revisions = append(revisions, b, max(b-1, 1), b+1)
		}
		for _, ubr := range revisions {
			v := Version{10, 0, row.Build, ubr}
			b, err := Lookup(v)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, c := range all {
				if c.Build.Version.Compare(v) <= 0 && v.Compare(c.Last) <= 0 {
					found++
					if !c.Build.differsOnlyInRevision(b) {
						t.Errorf("%s is not like %s, which stands for it", v, c)
					}
				}
			}
			if found != 1 {
				t.Errorf("%d candidates stand for %s", found, v)
			}
		}
	}
}
