package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// pauseImages are those that the node is configured to use.
func (x *nodeFacts) pauseImages() []observed.Text {
	var out []observed.Text
	for _, s := range x.subjects("kubelet") {
		if v, p, ok := argument(s, "--pod-infra-container-image"); ok && !variable(v) && v != "" {
			out = append(out, observed.Text{Value: v, Place: p})
		}
	}
	return append(out, x.n.Pause...)
}

var tagRelease = lazyregexp.New(
	`(?i)(?:^|[-_])(?:windows-?)?(ltsc2016|ltsc2019|ltsc2022|ltsc2025|1709|1803|1809|1903|1909|2004|20h2)(?:$|[-_])`)

// tagBuilds are the builds that release names in image tags mean.
var tagBuilds = map[string]string{"ltsc2016": "14393", "1709": "16299", "1803": "17134", "1809": "17763", "ltsc2019": "17763",
	"1903": "18362", "1909": "18363",
	"2004": "19041", "20h2": "19042", "ltsc2022": "20348", "ltsc2025": "26100"}

// pauseBuilds are the builds that the multi-platform pause images of the
// Kubernetes project hold (kubernetes/kubernetes build/pause/CHANGELOG.md, 3.4
// to 3.7).
var pauseBuilds = map[string][]string{
	"3.4":   {"17763", "18362", "18363", "19041"},
	"3.4.1": {"17763", "18362", "18363", "19041", "19042"},
	"3.5":   {"17763", "18362", "18363", "19041", "19042"},
	"3.6":   {"17763", "18362", "18363", "19041", "19042", "20348"},
	"3.7":   {"17763", "19042", "20348"},
}

// newestJudged is the newest build on which an image must match exactly; hosts
// from Windows Server 2025 on also run images of 2022.
const newestJudged = "20348"

// imageBuilds are the builds that an image is known to hold; nil when nothing
// is known about it.
func imageBuilds(image string) []string {
	name, tag, ok := cutTag(image)
	if !ok {
		return nil
	}
	if m := tagRelease.FindStringSubmatch(tag); m != nil {
		return []string{tagBuilds[strings.ToLower(m[1])]}
	}
	if strings.HasSuffix(name, "gcr.io/pause") || name == "registry.k8s.io/pause" || name == "mcr.microsoft.com/oss/kubernetes/pause" {
		return pauseBuilds[strings.TrimPrefix(tag, "v")]
	}
	return nil
}

func cutTag(image string) (name, tag string, ok bool) {
	image, _, _ = strings.Cut(image, "@")
	i := strings.LastIndexByte(image, ':')
	if i < 0 || strings.Contains(image[i:], "/") {
		return image, "", false
	}
	return image[:i], image[i+1:], true
}

// mismatches are the messages that an image is for another build, those about
// the pause image or the sandbox, and the others.
func (x *nodeFacts) mismatches() (pause, others []observed.Sign) {
	for _, s := range x.n.SignsOf("os-mismatch") {
		low := strings.ToLower(s.Place.Text)
		if strings.Contains(low, "pause") || strings.Contains(low, "sandbox") ||
			slices.ContainsFunc(x.pauseImages(), func(t observed.Text) bool { return strings.Contains(low, strings.ToLower(t.Value)) }) {
			pause = append(pause, s)
		} else {
			others = append(others, s)
		}
	}
	return pause, others
}

func pauseImage(x *nodeFacts) look {
	var out look
	build, place := x.build()
	images := x.pauseImages()
	known := false
	for _, image := range images {
		builds := imageBuilds(image.Value)
		if len(builds) == 0 || build == "" || build > newestJudged && len(build) == 5 {
			continue
		}
		known = true
		if slices.Contains(builds, build) {
			continue
		}
		evidence := []observed.Place{image.Place, place}
		for _, p := range x.n.Pods {
			if p.Status == "ContainerCreating" && x.runsHere(p) {
				evidence = append(evidence, p.Place)
				break
			}
		}
		out.hits = append(out.hits, hit{says: fmt.Sprintf("the pause image %s holds the builds %s, and the host has %s", image.Value,
			strings.Join(builds, ", "), build), evidence: evidence,
			write: fmt.Sprintf("name a pause image that holds the build %s", build)})
	}
	if len(out.hits) == 0 {
		signs, _ := x.mismatches()
		for _, s := range signs {
			evidence := []observed.Place{s.Place}
			for _, image := range images {
				evidence = append(evidence, image.Place)
			}
			out.hits = append(out.hits, hit{says: "the pause image does not fit the host's build of Windows: the runtime refuses the pod's sandbox",
				evidence: evidence})
		}
	}
	switch {
	case len(out.hits) > 0:
	case len(images) == 0:
		out.lacks = "No pause image; take the kubelet's command line, or containerd's config.toml"
	case build == "":
		out.lacks = "The host's build is not known; take: kubectl get nodes -o yaml, or cmd /c ver"
	case known:
		out.healthy = "the pause image holds the host's build " + build
	}
	return out
}

// runsHere reports whether a pod is on this node.
func (x *nodeFacts) runsHere(p observed.Pod) bool {
	return p.Node == "" || x.me == nil || p.Node == x.me.Name
}

func imageBuild(x *nodeFacts) look {
	var out look
	_, others := x.mismatches()
	for _, s := range others {
		evidence := []observed.Place{s.Place}
		for _, p := range x.n.Pods {
			if (p.Status == "ErrImagePull" || p.Status == "ImagePullBackOff") && x.runsHere(p) {
				evidence = append(evidence, p.Place)
				break
			}
		}
		out.hits = append(out.hits, hit{says: "an image has nothing for this build of Windows", evidence: evidence})
	}
	return out
}

func wincatMissing(x *nodeFacts) look {
	var out look
	for _, s := range x.n.SignsOf("wincat") {
		h := hit{says: "port-forward needs wincat in the pause image, and it is not there", evidence: []observed.Place{s.Place}}
		for _, image := range x.pauseImages() {
			h.says += fmt.Sprintf(" (pause image %s)", image.Value)
			h.evidence = append(h.evidence, image.Place)
			break
		}
		if v := x.t.Kubernetes; v != "" && older(v, 15) {
			h.says += fmt.Sprintf("; Kubernetes %s cannot use it yet", v)
			if x.me != nil {
				h.evidence = append(h.evidence, x.me.Place)
			}
		}
		out.hits = append(out.hits, h)
	}
	return out
}

func proxyVariables(x *nodeFacts) look {
	place, listed := x.n.Listed(observed.ListVariables)
	if !listed {
		if w := x.n.WinHTTP; w.Value != "" && w.Value != "direct" {
			return lacks("The node has a proxy, but there is no list of environment variables; take one with: cmd /c set")
		}
		return lacks("No list of environment variables to look for a proxy in; take one with: cmd /c set")
	}
	plain, p1 := x.n.Variable("HTTP_PROXY")
	secure, p2 := x.n.Variable("HTTPS_PROXY")
	direct := x.n.WinHTTP.Value == "" || x.n.WinHTTP.Value == "direct"
	h := hit{}
	switch {
	case p1 && p2:
		return healthy("HTTP_PROXY and HTTPS_PROXY are defined")
	case p1:
		h.says, h.evidence = "HTTP_PROXY is defined and HTTPS_PROXY is not", []observed.Place{plain.Place}
	case p2:
		h.says, h.evidence = "HTTPS_PROXY is defined and HTTP_PROXY is not", []observed.Place{secure.Place}
	case !direct:
		place.Text = fmt.Sprintf("%d variables, neither HTTP_PROXY nor HTTPS_PROXY", len(x.n.Variables))
		h.says, h.evidence = "Windows has the proxy "+x.n.WinHTTP.Value+", and the variables that Kubernetes' programs read are not defined",
			[]observed.Place{x.n.WinHTTP.Place, place}
	default:
		return healthy("no proxy is configured")
	}
	for _, s := range x.n.SignsOf("pull-timeout") {
		h.level = "error"
		h.evidence = append(h.evidence, s.Place)
	}
	return look{hits: []hit{h}}
}
