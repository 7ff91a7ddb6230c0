package suite

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// storageSpecs look at volumes. Those of clouds and of CSI drivers need a driver, which
// no suite can bring.
var storageSpecs = []written{
	{name: "read-only-volume", title: "a container cannot write to a mount that is read-only, and another one can",
		claims: []string{"storage-read-only-volumes"}, try: readOnly},
	{name: "container-paths", title: "a path in a container is not a path of the node", claims: []string{"storage-paths-in-container"},
		kubernetes: "1.23", try: containerPaths},
	{name: "host-path-volume", title: "a folder of the node is a volume", claims: []string{"field-volume-hostpath"}, try: hostPath},
	{name: "named-pipe", title: "a container sees a named pipe of its node", claims: []string{"named-pipe-mounts"}, try: namedPipe},
}

func readOnly(ctx context.Context, e *Env) error {
	e.needWindows(1)
	pod := windowsPod("read-only", "pause")
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: `C:\data`, ReadOnly: true}}
	writer := pod.Spec.Containers[0]
	writer.Name, writer.VolumeMounts = "writer", []v1.VolumeMount{{Name: "data", MountPath: `C:\data`}}
	pod.Spec.Containers = append(pod.Spec.Containers, writer)
	p, err := e.run(ctx, pod)
	if err != nil {
		return orSkip(err)
	}
	if err := e.prints(ctx, p, "writer", `echo written> C:\data\file & type C:\data\file`, "written"); err != nil {
		return err
	}
	if err := e.prints(ctx, p, "main", `type C:\data\file`, "written"); err != nil {
		return err
	}
	// What counts is what is in the volume afterwards, and not what the shell says of it.
	if _, err := e.exec(ctx, p, "main", "cmd.exe", "/c", `echo no> C:\data\file & echo no> C:\data\new`); err != nil {
		return err
	}
	if err := e.prints(ctx, p, "writer", `type C:\data\file`, "written"); err != nil {
		return err
	}
	return e.prints(ctx, p, "writer", `if not exist C:\data\new echo nothing new`, "nothing new")
}

func containerPaths(ctx context.Context, e *Env) error {
	node := &e.needWindows(1)[0]
	host := pinToNode(windowsPod("host"), node)
	asHost(&host.Spec)
	h, err := e.run(ctx, host)
	if err != nil {
		skip("the node can only be looked at from a HostProcess container: %v", err)
	}
	p, err := e.run(ctx, pinToNode(windowsPod("inside", "pause"), node))
	if err != nil {
		return orSkip(err)
	}
	name := `C:\winlab-` + string(p.UID)
	if err := e.prints(ctx, p, "main", "echo x> "+name+" & if exist "+name+" echo here", "here"); err != nil {
		return err
	}
	o, err := e.exec(ctx, h, "shell", "cmd.exe", "/c", "if exist "+name+" echo here")
	if err == nil && strings.Contains(o.stdout, "here") {
		err = fmt.Errorf("the node has the container's file %s", name)
	}
	return err
}

// mountsHost is a pod with a path of its node.
func mountsHost(name, path string, kind v1.HostPathType, at string) *v1.Pod {
	pod := windowsPod(name, "pause")
	pod.Spec.Volumes = []v1.Volume{{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path, Type: &kind}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "host", MountPath: at}}
	return pod
}

func hostPath(ctx context.Context, e *Env) error {
	node := &e.needWindows(1)[0]
	folder := `C:\Windows\Temp\` + e.ns()
	first, err := e.run(ctx, pinToNode(mountsHost("writes", folder, v1.HostPathDirectoryOrCreate, `C:\host`), node))
	if err != nil {
		return orSkip(err)
	}
	second, err := e.run(ctx, pinToNode(mountsHost("reads", folder, v1.HostPathDirectoryOrCreate, `C:\other`), node))
	if err != nil {
		return orSkip(err)
	}
	if err := e.prints(ctx, first, "main", `echo shared> C:\host\file & type C:\host\file`, "shared"); err != nil {
		return err
	}
	if err := e.prints(ctx, second, "main", `type C:\other\file`, "shared"); err != nil {
		return err
	}
	_, err = e.exec(ctx, first, "main", "cmd.exe", "/c", `del /q C:\host\file`)
	return err
}

func namedPipe(ctx context.Context, e *Env) error {
	e.needWindows(1)
	// A Windows node whose runtime is containerd has its pipe.
	const pipe = `\\.\pipe\containerd-containerd`
	p, err := e.run(ctx, mountsHost("pipe", pipe, v1.HostPathUnset, pipe))
	if err != nil {
		return orSkip(err)
	}
	o, err := e.exec(ctx, p, "main", "cmd.exe", "/c", `dir \\.\pipe\\`)
	if err == nil && !strings.Contains(o.stdout, "containerd-containerd") {
		err = fmt.Errorf("the container does not list the pipe: %s", o.all())
	}
	return err
}
