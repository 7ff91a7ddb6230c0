package manifest

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// Image is what is known of a container image by its reference alone. The
// registry is not asked; what the reference does not say is left empty.
type Image struct {
	// OS is "windows" or "linux", "" when it is not known or the reference is
	// for both systems.
	OS string
	// Build is the Windows build of its base, "10.0.17763", Release a name of
	// claims.Releases; "" when the reference does not say.
	Build, release string
	// MultiArch is set when the reference has entries for several systems or
	// Windows builds, of which the node takes the one that fits.
	MultiArch bool
	// user is the account that the image runs as by default, "" when
	// it is not known.
	user string
	// unix is set when the image brings programs of Unix, noUnix when it does not.
	unix, noUnix bool
	// why says what this was concluded from, "" when nothing is known.
	why string
}

//go:embed images.yaml
var imageData []byte

// imageFact is an entry of images.yaml.
type imageFact struct {
	Repos []string `yaml:"repos"`
	Tags  string   `yaml:"tags"`
	OS    string   `yaml:"os"`
	Multi bool     `yaml:"multi"`
	Build string   `yaml:"build"`
	Why   string   `yaml:"why"`
	User  string   `yaml:"user"`
	Unix  string   `yaml:"unix"`

	tags *regexp.Regexp
}

// imageFacts is the table, read when it is asked for. A fault in it is a fault of this package.
var imageFacts = sync.OnceValue(func() []imageFact {
	facts, err := readImageFacts(imageData)
	if err != nil {
		panic(err)
	}
	return facts
})

func readImageFacts(text []byte) ([]imageFact, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	var facts []imageFact
	if err := dec.Decode(&facts); err != nil {
		return nil, fmt.Errorf("images.yaml: %w", err)
	}
	for i := range facts {
		f := &facts[i]
		if !slices.Contains([]string{"windows", "linux", "any"}, f.OS) || f.Why == "" || len(f.Repos) == 0 ||
			!slices.Contains([]string{"", "yes", "no"}, f.Unix) {
			return nil, fmt.Errorf("images.yaml: entry %d needs repos, os and why; unix is yes or no", i+1)
		}
		if f.Tags != "" {
			re, err := regexp.Compile(f.Tags)
			if err != nil {
				return nil, fmt.Errorf("images.yaml: entry %d: %w", i+1, err)
			}
			f.tags = re
		}
	}
	return facts, nil
}

// ImageOf says what is known of an image. It never guesses: a reference by
// digest alone, or of a repository that the table does not have, says nothing.
func ImageOf(image string) Image {
	repo, tag := splitImage(image)
	for _, f := range imageFacts() {
		if f.tags != nil && !f.tags.MatchString(tag) || !slices.ContainsFunc(f.Repos, func(g string) bool { return repoFits(g, repo) }) {
			continue
		}
		i := Image{OS: f.OS, Build: f.Build, MultiArch: f.Multi, why: f.Why, user: f.User, unix: f.Unix == "yes", noUnix: f.Unix == "no"}
		switch f.OS {
		case "any":
			i.OS, i.MultiArch = "", true
		case "windows":
			if build, release, ok := releaseOf(tag); ok {
				i.Build, i.release, i.MultiArch = build, release, false
			}
		}
		return i
	}
	return Image{}
}

// splitImage takes a reference apart and completes the registry as Docker and
// containerd do: "nginx" is docker.io/library/nginx. A missing tag is "latest",
// but for references by digest, whose tag says nothing.
func splitImage(image string) (repo, tag string) {
	name, digest, byDigest := strings.Cut(strings.TrimSpace(image), "@")
	repo = name
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		repo, tag = name[:i], name[i+1:]
	}
	if tag == "" && !(byDigest && digest != "") {
		tag = "latest"
	}
	repo = strings.ToLower(repo)
	domain, _, nested := strings.Cut(repo, "/")
	switch {
	case !nested:
		repo = "docker.io/library/" + repo
	case domain != "localhost" && !strings.ContainsAny(domain, ".:"):
		repo = "docker.io/" + repo
	case domain == "index.docker.io":
		repo = "docker.io" + strings.TrimPrefix(repo, domain)
	}
	return repo, tag
}

// repoFits compares a repository with a pattern, of which only the end may be
// open, "mcr.microsoft.com/windows/**", "docker.io/microsoft/dotnet-*", or only the
// beginning: "**/busybox".
func repoFits(pattern, repo string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "**/"); ok {
		return strings.HasSuffix(repo, "/"+suffix)
	}
	if prefix, ok := strings.CutSuffix(pattern, "**"); ok {
		return strings.HasPrefix(repo, prefix)
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		rest, ok := strings.CutPrefix(repo, prefix)
		return ok && !strings.Contains(rest, "/")
	}
	return pattern == repo
}

// releaseTokens are the words in tags that name a release of Windows Server
// and so its build (Microsoft, Windows container version compatibility). They
// are compared in lower case. 1809 and ltsc2019 are one build.
var releaseTokens = map[string]string{
	"ltsc2016": "2016", "sac2016": "2016", "1607": "2016",
	"1709": "1709", "1803": "1803", "1809": "1809", "ltsc2019": "2019",
	"1903": "1903", "1909": "1909", "2004": "2004", "20h2": "20H2", "2009": "20H2",
	"ltsc2022": "2022", "ltsc2025": "2025",
}

var (
	buildInTag = lazyregexp.New(`(?:^|[^0-9.])(10\.0\.\d{5})(?:\.\d+)?(?:$|[^0-9.])`)
	wordsOfTag = lazyregexp.New(`[0-9a-z]+`)
)

// releaseOf finds build and release in the tag of a Windows image. The last
// word that names a release counts: "4.8-20191008-windowsservercore-ltsc2019".
func releaseOf(tag string) (build, release string, ok bool) {
	tag = strings.ToLower(tag)
	if m := buildInTag.FindStringSubmatch(tag); m != nil {
		r, _ := claims.ReleaseNamed(m[1])
		return m[1], r.Name, true
	}
	for _, w := range slices.Backward(wordsOfTag.FindAllString(tag, -1)) {
		if name, known := releaseTokens[w]; known {
			r, _ := claims.ReleaseNamed(name)
			return r.Build, r.Name, true
		}
	}
	return "", "", false
}
