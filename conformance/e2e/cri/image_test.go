package cri

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestImages(t *testing.T) {
	b := start(t, "linux")
	spec := func(s string) *runtimeapi.ImageSpec { return &runtimeapi.ImageSpec{Image: s} }
	p, err := b.im.PullImage(b.ctx, &runtimeapi.PullImageRequest{Image: spec("example.org/numbered:1")})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{p.ImageRef, "example.org/numbered:1", strings.TrimPrefix(p.ImageRef, "sha256:")} {
		a, err := b.im.ImageStatus(b.ctx, &runtimeapi.ImageStatusRequest{Image: spec(name), Verbose: true})
		if err != nil || a.Image == nil || a.Image.Uid.GetValue() != 1234 || a.Image.Size == 0 ||
			a.Image.RepoTags[0] != "example.org/numbered:1" || a.Info["info"] == "" {
			t.Errorf("%s: %v %v", name, a, err)
		}
	}
	_, err = b.im.PullImage(b.ctx, &runtimeapi.PullImageRequest{Image: spec("nowhere:1")})
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), `failed to pull and unpack image "docker.io/library/nowhere:1"`) ||
		!strings.Contains(err.Error(), "not found") {
		t.Error(err)
	}
	if _, err := b.im.PullImage(b.ctx, &runtimeapi.PullImageRequest{Image: spec("UPPER:1")}); err == nil ||
		!strings.Contains(err.Error(), "failed to parse image reference") {
		t.Error(err)
	}
	for want, f := range map[int]*runtimeapi.ImageFilter{1: nil, 0: {Image: spec("example.org/test:1")}} {
		if l, err := b.im.ListImages(b.ctx, &runtimeapi.ListImagesRequest{Filter: f}); err != nil || len(l.Images) != want {
			t.Errorf("%v %v", l, err)
		}
	}
	if f, err := b.im.ImageFsInfo(b.ctx, &runtimeapi.ImageFsInfoRequest{}); err != nil || f.ImageFilesystems[0].UsedBytes.Value == 0 ||
		f.ImageFilesystems[0].FsId.Mountpoint != "/" {
		t.Errorf("%v %v", f, err)
	}
	for range 2 {
		if _, err := b.im.RemoveImage(b.ctx, &runtimeapi.RemoveImageRequest{Image: spec(p.ImageRef)}); err != nil {
			t.Error(err)
		}
	}
	if a, err := b.im.ImageStatus(b.ctx, &runtimeapi.ImageStatusRequest{Image: spec("example.org/numbered:1")}); err != nil || a.Image != nil {
		t.Errorf("%v %v", a, err)
	}
}
