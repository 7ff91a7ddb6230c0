package cri

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/winlab-dev/winlab/conformance/e2e/cri/images"
)

// imageService answers calls about images from the runtime's store.
type imageService struct {
	runtimeapi.UnimplementedImageServiceServer
	r *Runtime
}

// PullImage gets an image from the image table.
func (i imageService) PullImage(ctx context.Context, q *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	id, err := i.r.o.Images.Pull(ctx, q.GetImage().GetImage())
	switch {
	case errors.Is(err, images.ErrNotFound):
		return nil, status.Error(codes.NotFound, err.Error())
	case err != nil:
		return nil, err
	}
	return &runtimeapi.PullImageResponse{ImageRef: id}, nil
}

// ImageStatus tells of an image; one that is not there is no error.
func (i imageService) ImageStatus(_ context.Context, q *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	p := i.r.o.Images.Get(q.GetImage().GetImage())
	if p == nil {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	a := &runtimeapi.ImageStatusResponse{Image: i.image(p)}
	if q.Verbose {
		a.Info = info(map[string]any{"config": p.Config, "files": p.Files})
	}
	return a, nil
}

func (i imageService) image(p *images.Pulled) *runtimeapi.Image {
	a := &runtimeapi.Image{Id: p.ID, RepoTags: p.Tags, RepoDigests: p.Digests, Size: p.Size, Spec: &runtimeapi.ImageSpec{}}
	// The kubelet needs a number to see that an image does not run as root.
	user, _, _ := strings.Cut(p.Config.User, ":")
	if uid, err := strconv.ParseInt(user, 10, 64); err == nil && i.r.o.OS != "windows" {
		a.Uid = &runtimeapi.Int64Value{Value: uid}
	} else {
		a.Username = user
	}
	return a
}

// ListImages lists what has been pulled.
func (i imageService) ListImages(_ context.Context, q *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	return &runtimeapi.ListImagesResponse{Images: i.list(q.Filter)}, nil
}

func (i imageService) list(f *runtimeapi.ImageFilter) (all []*runtimeapi.Image) {
	if name := f.GetImage().GetImage(); name != "" {
		if p := i.r.o.Images.Get(name); p != nil {
			all = append(all, i.image(p))
		}
		return all
	}
	for _, p := range i.r.o.Images.List() {
		all = append(all, i.image(p))
	}
	return all
}

// RemoveImage takes an image away; one that is not there is no error.
func (i imageService) RemoveImage(_ context.Context, q *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	i.r.o.Images.Remove(q.GetImage().GetImage())
	return &runtimeapi.RemoveImageResponse{}, nil
}

// ImageFsInfo tells what the images take. Their files are programs that this machine has
// anyway, so that removing an image makes no room.
func (i imageService) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	u := &runtimeapi.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: i.r.o.ImageFS},
		UsedBytes: value(0), InodesUsed: value(0),
	}
	for _, p := range i.r.o.Images.List() {
		u.UsedBytes.Value += p.Size
		u.InodesUsed.Value += uint64(len(p.Files))
	}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{u},
		ContainerFilesystems: []*runtimeapi.FilesystemUsage{u}}, nil
}
