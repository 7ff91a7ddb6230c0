package suite

import (
	"fmt"
	"strings"

	"k8s.io/kubernetes/test/utils/image"
)

// Images are those of Kubernetes' own e2e tests, by the names and versions of its
// manifest; --image-repo-list gives mirrors of their registries in the same form as
// e2e.test takes it. None is called latest.
//
// serverCore is the one image that they lack: Resolve-DnsName comes with Windows Server
// Core and not with Nano Server. Its tag is that of the node's release.
const serverCore = "mcr.microsoft.com/windows/servercore"

func agnhost() string { return image.GetE2EImage(image.Agnhost) }

func busybox() string { return image.GetE2EImage(image.BusyBox) }

func pause() string { return image.GetE2EImage(image.Pause) }

// ltsc are the tags of images that must match the node.
var ltsc = map[string]string{"10.0.17763": "ltsc2019", "10.0.20348": "ltsc2022", "10.0.26100": "ltsc2025"}

// serverCoreFor is the image for a build; "" when there is none with a fixed tag.
func serverCoreFor(build string) string {
	for prefix, tag := range ltsc {
		if build == prefix || strings.HasPrefix(build, prefix+".") {
			return serverCore + ":" + tag
		}
	}
	return ""
}

// ImageList are the images that a run may pull.
func ImageList(builds []string) []string {
	list := []string{agnhost(), busybox(), pause()}
	for _, b := range builds {
		if core := serverCoreFor(b); core != "" {
			list = append(list, core)
		}
	}
	return list
}

// checkTags reports an image without a fixed tag, which a file of mirrors could bring in.
func checkTags(images []string) error {
	for _, i := range images {
		_, tag, ok := strings.Cut(i[strings.LastIndexByte(i, '/')+1:], ":")
		if !ok || tag == "latest" {
			return fmt.Errorf("the image %s has no fixed tag", i)
		}
	}
	return nil
}
