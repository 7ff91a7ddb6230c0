package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
)

// podHits runs one of the pod tests over documents and returns field and
// variables of what it finds, and fails when a hit has no place in the file.
func podHits(t *testing.T, test string, args map[string]string, text string) []string {
	t.Helper()
	docs, mistakes := strict.Read("pod.yaml", strings.NewReader(text))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	all, _, _, mistakes := Read(docs, Options{})
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	i := slices.IndexFunc(podTests, func(x subject.Test) bool { return x.Name == test })
	if i < 0 {
		t.Fatalf("there is no test %s", test)
	}
	var found []string
	for _, s := range all {
		if s.On != "pod" {
			continue
		}
		for _, h := range podTests[i].Find(subject.NewContext(claims.Target{}, all, nil), s, args) {
			if h.At == nil || h.At.Line == 0 {
				t.Errorf("%s: the hit at %s has no place", test, h.Field)
			}
			line := h.Field
			for _, v := range podTests[i].Vars {
				if value, ok := h.Vars[v]; ok {
					line += " " + v + "=" + value
				} else {
					t.Errorf("%s does not fill %s", test, v)
				}
			}
			found = append(found, line)
		}
	}
	return found
}

// windowsPod puts a spec into a pod for Windows.
func windowsPod(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  nodeSelector: {kubernetes.io/os: windows}\n" + spec
}

func TestPodTests(t *testing.T) {
	const mounts = `
  initContainers:
  - {name: first, image: a, volumeMounts: [{name: conf, mountPath: 'C:\a', subPath: a.conf}]}
  containers:
  - {name: app, image: a, volumeMounts: [{name: data, mountPath: 'C:\b', subPathExpr: $(POD)}, {name: conf, mountPath: 'C:\c'}, {name: claim, mountPath: 'C:\d', subPath: x}]}
  volumes:
  - {name: conf, configMap: {name: conf}}
  - {name: data, persistentVolumeClaim: {claimName: data}}
`
	const claims = `
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteMany], volumeName: one}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: one}
spec: {capacity: {storage: 1Gi}, nfs: {server: a, path: /b}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: two}
spec: {capacity: {storage: 1Gi}, csi: {driver: c, volumeHandle: d}, claimRef: {name: more, namespace: other}}
`
	for _, x := range []struct {
		name, test string
		args       map[string]string
		text       string
		want       []string
	}{
		{"subPath of a file volume", "subpath-mount", map[string]string{"of": "file"}, windowsPod(mounts),
			[]string{"spec.initContainers[0].volumeMounts[0].subPath container=first volume=conf kind=configMap path=a.conf"}},
		{"subPath of other volumes, also of a claim template", "subpath-mount", map[string]string{"of": "other"}, windowsPod(mounts), []string{
			"spec.containers[0].volumeMounts[0].subPathExpr container=app volume=data kind=persistentVolumeClaim path=$(POD)",
			"spec.containers[0].volumeMounts[2].subPath container=app volume=claim kind= path=x"}},
		{"a volume's own source", "volume-of-kind", map[string]string{"kinds": "rbd, cephfs"},
			windowsPod("  containers: [{name: app, image: a}]\n  volumes: [{name: v, cephfs: {monitors: [a]}}, {name: w, emptyDir: {}}]"),
			[]string{"spec.volumes[0].cephfs volume=v kind=cephfs by=the volume v"}},
		{"what is behind a claim that names its volume", "volume-of-kind", map[string]string{"kinds": "nfs"},
			windowsPod("  containers: [{name: app, image: a}]\n  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]" + claims),
			[]string{"spec.volumes[0].persistentVolumeClaim.claimName volume=v kind=nfs by=the PersistentVolume one of the claim data"}},
		{"what is behind a claim that its volume names", "volume-of-kind", map[string]string{"kinds": "csi"},
			windowsPod("  containers: [{name: app, image: a}]\n  volumes: [{name: v, persistentVolumeClaim: {claimName: more}}]" + claims),
			[]string{"spec.volumes[0].persistentVolumeClaim.claimName volume=v kind=csi by=the PersistentVolume two of the claim more"}},
		{"a claim that the files do not have", "volume-of-kind", map[string]string{"kinds": "nfs, persistentVolumeClaim"},
			windowsPod("  containers: [{name: app, image: a}]\n  volumes: [{name: v, persistentVolumeClaim: {claimName: far}}]" + claims), nil},
		{"a claim of another namespace", "volume-of-kind", map[string]string{"kinds": "csi"},
			strings.Replace(windowsPod("  containers: [{name: app, image: a}]\n  volumes: [{name: v, persistentVolumeClaim: {claimName: more}}]"+
				claims), "{name: a}", "{name: a, namespace: mine}", 1), nil},
		{"resolv.conf by its path, its part and its host", "mounts-resolv-conf", nil, windowsPod(`
  containers:
  - {name: app, image: a, volumeMounts: [{name: dns, mountPath: /etc/resolv.conf}, {name: dns, mountPath: 'C:\x', subPath: Resolv.conf}, {name: host, mountPath: 'C:\y'}, {name: dns, mountPath: 'C:\resolv.conf.d'}]}
  volumes: [{name: dns, configMap: {name: dns}}, {name: host, hostPath: {path: /etc/resolv.conf}}]`), []string{
			"spec.containers[0].volumeMounts[0].mountPath container=app path=/etc/resolv.conf",
			`spec.containers[0].volumeMounts[1].mountPath container=app path=C:\x`,
			`spec.containers[0].volumeMounts[2].mountPath container=app path=C:\y`}},
		{"annotations in the order of their names", "annotation", map[string]string{"prefix": "p/", "except": "no"},
			"apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {p/b: 'yes', p/a: 'yes', p/c: 'no', q/a: 'yes', p/d: ''}}\nspec: {containers: [{name: app, image: a}]}",
			[]string{`metadata.annotations["p/a"] annotation=p/a value=yes`, `metadata.annotations["p/b"] annotation=p/b value=yes`}},
		{"the pod's policy and the container's user", "non-root-administrator", nil, windowsPod(`
  securityContext: {runAsNonRoot: true}
  containers:
  - {name: app, image: a, securityContext: {windowsOptions: {runAsUserName: CONTAINERADMINISTRATOR}}}
  - {name: free, image: a, securityContext: {runAsNonRoot: false, windowsOptions: {runAsUserName: ContainerAdministrator}}}
  - {name: silent, image: a}`),
			[]string{"spec.containers[0].securityContext.windowsOptions.runAsUserName container=app user=CONTAINERADMINISTRATOR image=a"}},
		{"old kubelets compare exactly", "non-root-administrator", map[string]string{"case": "exact"}, windowsPod(`
  securityContext: {runAsNonRoot: true, windowsOptions: {runAsUserName: ContainerAdministrator}}
  containers:
  - {name: app, image: a, securityContext: {windowsOptions: {runAsUserName: containeradministrator}}}
  - {name: root, image: a}`),
			[]string{"spec.securityContext.windowsOptions.runAsUserName container=root user=ContainerAdministrator image=a"}},
		{"the container asks for HostProcess", "asks-for-host-process", nil,
			windowsPod("  containers: [{name: a, image: a}, {name: b, image: a, securityContext: {windowsOptions: {hostProcess: true}}}]"),
			[]string{"spec.containers[1].securityContext.windowsOptions.hostProcess"}},
		{"without HostProcess", "asks-for-host-process", nil,
			windowsPod("  securityContext: {windowsOptions: {hostProcess: false}}\n  containers: [{name: a, image: a}]"), nil},
		{"an ordinary init container", "host-process-mixed", nil,
			windowsPod(
				"  initContainers: [{name: i, image: a}]\n  containers: [{name: b, image: a, securityContext: {windowsOptions: {hostProcess: true}}}]"),
			[]string{"spec.initContainers[0] container=i"}},
		{"a container that contradicts its pod", "host-process-mixed", nil,
			windowsPod(
				"  securityContext: {windowsOptions: {hostProcess: false}}\n  containers: [{name: b, image: a, securityContext: {windowsOptions: {hostProcess: true}}}]"),
			[]string{"spec.containers[0].securityContext.windowsOptions.hostProcess container=b"}},
		{"all inherit", "host-process-mixed", nil,
			windowsPod(
				"  securityContext: {windowsOptions: {hostProcess: true}}\n  initContainers: [{name: i, image: a}]\n  containers: [{name: b, image: a}]"), nil},
		{"a user for one of two", "host-process-without-user", nil,
			windowsPod(
				"  securityContext: {windowsOptions: {hostProcess: true}}\n  containers: [{name: a, image: a, securityContext: {windowsOptions: {runAsUserName: x}}}, {name: b, image: a}]"),
			[]string{"spec.containers[1] container=b"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := podHits(t, x.test, x.args, x.text); !slices.Equal(got, x.want) {
				t.Errorf("%s finds\n%s\nwant\n%s", x.test, strings.Join(got, "\n"), strings.Join(x.want, "\n"))
			}
		})
	}
}

// TestPodTestsInTemplates: fields begin at the template of a workload.
func TestPodTestsInTemplates(t *testing.T) {
	got := podHits(t, "subpath-mount", map[string]string{"of": "any"}, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers:
      - {name: app, image: a, volumeMounts: [{name: d, mountPath: 'C:\d', subPath: d}]}
      volumes: [{name: d, emptyDir: {}}]
`)
	if want := []string{"spec.containers[0].volumeMounts[0].subPath container=app volume=d kind=emptyDir path=d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
