package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
)

// imageHits reads documents and asks one test about every pod in them; a hit
// is written as FIELD with its variables.
func imageHits(t *testing.T, name string, target claims.Target, text string) []string {
	t.Helper()
	docs, ms := strict.Read("test.yaml", strings.NewReader(text))
	if err := ms.AsError(); err != nil {
		t.Fatal(err)
	}
	all, _, _, ms := Read(docs, Options{})
	if err := ms.AsError(); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(imageTests, func(x subject.Test) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("no test is called %q", name)
	}
	var hits []string
	for _, s := range all {
		if s.On != "pod" {
			continue
		}
		for _, h := range imageTests[i].Find(subject.NewContext(target, all, nil), s, nil) {
			if h.At == nil || h.At.Line == 0 {
				t.Errorf("%s: the hit has no place", name)
			}
			line := h.Field
			for _, v := range imageTests[i].Vars {
				line += " " + v + "=" + h.Vars[v]
			}
			hits = append(hits, line)
		}
	}
	return hits
}

func pod(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n" + spec
}

const (
	on2019 = `  nodeSelector: {kubernetes.io/os: windows, node.kubernetes.io/windows-build: 10.0.17763}
`
	win = `  nodeSelector: {kubernetes.io/os: windows}
`
	img2019 = `  containers: [{name: a, image: "mcr.microsoft.com/windows/servercore:ltsc2019"}]
`
	img2022 = `  containers: [{name: a, image: "mcr.microsoft.com/windows/servercore:ltsc2022"}]
`
	img2025 = `  containers: [{name: a, image: "mcr.microsoft.com/windows/servercore:ltsc2025"}]
`
)

func class(name, handler string) string {
	return "---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: " + name + "}\nhandler: " + handler + "\n"
}

func TestImagesAndHosts(t *testing.T) {
	at := func(k, w string) claims.Target { return claims.Target{Kubernetes: k, Release: w} }
	annotated := strings.Replace(pod(win+img2019), "name: p",
		`name: p, annotations: {experimental.windows.kubernetes.io/isolation-type: hyperv}`, 1)
	for _, c := range []struct {
		what   string
		target claims.Target
		text   string
		// finds is the test that must have one hit, "" when none may.
		finds string
	}{
		{"same build", at("1.20", "2019"), pod(win + img2019), ""},
		{"one build in two channels", at("1.18", "1809"), pod(win + img2019), ""},
		{"older image", at("1.20", "2004"), pod(win + img2019), "image-not-for-host"},
		{"newer image", at("1.36", "2022"), pod(win + img2025), "image-not-for-host"},
		{"2019 on 2022", at("1.30", "2022"), pod(win + img2019), "image-not-for-host"},
		{"2019 on 2025", at("1.36", "2025"), pod(win + img2019), "image-not-for-host"},
		{"2022 on 2025", at("1.36", "2025"), pod(win + img2022), "image-of-earlier-release"},
		{"revision does not count", claims.Target{Kubernetes: "1.20", Build: "10.0.17763.1432"}, pod(win + img2019), ""},
		{"the setting has no Windows", claims.Target{Kubernetes: "1.20"}, pod(win + img2019), ""},
		{"the selector names another build", at("1.36", "2025"), pod(on2019 + img2019), ""},
		{"the selector's build is not the image's", at("1.36", "2025"), pod(on2019 + img2022), "image-not-for-host"},
		{"unknown image", at("1.36", "2025"), pod(win + "  containers: [{name: a, image: example.com/x:1}]\n"), ""},
		{"multi-arch image", at("1.36", "2025"), pod(win + "  containers: [{name: a, image: \"mcr.microsoft.com/oss/kubernetes/pause:3.6\"}]\n"),
			""},
		{"Hyper-V class", at("1.30", "2022"), pod(win+"  runtimeClassName: h\n"+img2019) + class("h", "runhcs-wcow-hypervisor"), ""},
		{"Hyper-V class, newer image", at("1.30", "2022"), pod(win+"  runtimeClassName: h\n"+img2025) + class("h", "runhcs-wcow-hypervisor"),
			"image-newer-than-host"},
		{"process class", at("1.30", "2022"), pod(win+"  runtimeClassName: h\n"+img2019) + class("h", "runhcs-wcow-process"),
			"image-not-for-host"},
		{"class unknown", at("1.30", "2022"), pod(win + "  runtimeClassName: h\n" + img2019), ""},
		{"class unknown, its name says it", at("1.30", "2022"), pod(win + "  runtimeClassName: runhcs-wcow-process\n" + img2019),
			"image-not-for-host"},
		{"class selects the build", at("1.36", "2025"), pod("  runtimeClassName: w\n"+img2019) +
			class("w", "docker") + "scheduling: {nodeSelector: {kubernetes.io/os: windows, node.kubernetes.io/windows-build: 10.0.17763}}\n", ""},
		{"annotation of the experiment", at("1.14", "1809"), strings.Replace(annotated, "ltsc2019", "1803", 1), ""},
		{"annotation after the experiment", at("1.30", "2022"), annotated, "image-not-for-host"},
	} {
		for _, name := range []string{"image-not-for-host", "image-of-earlier-release", "image-newer-than-host"} {
			hits := imageHits(t, name, c.target, c.text)
			if want := name == c.finds; (len(hits) == 1) != want || len(hits) > 1 {
				t.Errorf("%s: %s finds %q", c.what, name, hits)
			}
		}
	}
}

func TestImageHitsSayWhere(t *testing.T) {
	text := pod(win + `  initContainers: [{name: init, image: "mcr.microsoft.com/windows/nanoserver:1809"}]
` + img2019)
	got := imageHits(t, "image-not-for-host", claims.Target{Kubernetes: "1.36", Release: "2025"}, text)
	want := []string{
		"spec.initContainers[0].image container=init image=mcr.microsoft.com/windows/nanoserver:1809 made-for=Windows Server, version 1809 (10.0.17763) host=Windows Server 2025 (10.0.26100)",
		"spec.containers[0].image container=a image=mcr.microsoft.com/windows/servercore:ltsc2019 made-for=Windows Server 2019 (10.0.17763) host=Windows Server 2025 (10.0.26100)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestImagesAndSystems(t *testing.T) {
	const nginx, iis = `{name: web, image: nginx}`, `{name: iis, image: "mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2019"}`
	list := func(c ...string) string { return "  containers: [" + strings.Join(c, ", ") + "]\n" }
	for _, c := range []struct{ what, text, both, other string }{
		{"Windows only", pod(win + list(iis)), "", ""},
		{"Linux only", pod(list(nginx)), "", ""},
		{"Linux image in a Windows pod", pod(win + list(nginx)), "",
			"spec.containers[0].image container=web image=nginx system=Windows other-system=Linux"},
		{"Windows image in a Linux pod", pod("  os: {name: linux}\n" + list(iis)), "", "spec.containers[0].image container=iis"},
		{"both in one pod", pod(win + list(iis, nginx)), "spec.containers[1].image container=web image=nginx other-container=iis", ""},
		{"both, nothing else says", pod(list(nginx, iis)), "spec.containers[0].image container=web image=nginx other-container=iis", ""},
		{"an image for both systems", pod(win + list(`{name: p, image: "registry.k8s.io/pause:3.9"}`, `{name: x, image: "example.com/x"}`)), "",
			""},
		{"an unknown image beside a Linux one", pod(win + list(nginx, `{name: x, image: "example.com/x"}`)), "",
			"spec.containers[0].image container=web image=nginx"},
	} {
		for name, want := range map[string]string{"images-of-both-systems": c.both, "image-of-other-system": c.other} {
			hits := imageHits(t, name, claims.Target{}, c.text)
			if want == "" && len(hits) == 0 || want != "" && len(hits) == 1 && strings.HasPrefix(hits[0], want) {
				continue
			}
			t.Errorf("%s: %s finds %q, want %q", c.what, name, hits, want)
		}
	}
}

func TestHyperVAnnotationWithContainers(t *testing.T) {
	for containers, want := range map[string]int{
		`[{name: a, image: one}]`:                        0,
		`[{name: a, image: one}, {name: b, image: two}]`: 1,
	} {
		for value, counts := range map[string]bool{"hyperv": true, "process": false} {
			text := "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {experimental.windows.kubernetes.io/isolation-type: " + value +
				"}}\nspec:\n  containers: " + containers + "\n"
			n := want
			if !counts {
				n = 0
			}
			if hits := imageHits(t, "hyperv-annotation-with-containers", claims.Target{}, text); len(hits) != n {
				t.Errorf("%s, %s: %q", containers, value, hits)
			}
		}
	}
}
