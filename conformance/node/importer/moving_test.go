package importer

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
)

// TestMoving: a pod that changed shortly before the bundle was begun, or since, makes a difference of
// its Service doubtful; one that changed long before does not, nor does a pod of another Service, and
// a bundle without its time says nothing.
func TestMoving(t *testing.T) {
	made := time.Date(2026, 11, 23, 22, 3, 31, 0, time.UTC)
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "a"}}}
	pod := func(app string, created, ready time.Duration, status corev1.ConditionStatus) kubePod {
		p := kubePod{}
		p.Namespace, p.Name, p.Labels = "web", "a-0", map[string]string{"app": app}
		p.CreationTimestamp = metav1.NewTime(made.Add(-created))
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(made.Add(-ready))}}
		return p
	}
	ending := pod("a", time.Hour, time.Hour, corev1.ConditionTrue)
	ending.DeletionTimestamp = &metav1.Time{Time: made.Add(5 * time.Second)}
	for name, c := range map[string]struct {
		pod  kubePod
		made time.Time
		want string
	}{
		"long ago": {pod("a", time.Hour, 50*time.Minute, corev1.ConditionTrue), made, ""},
		"just made": {pod("a", 11*time.Second, 11*time.Second, corev1.ConditionFalse), made,
			"pod web/a-0 was made 11s before the bundle was begun"},
		"just not ready":      {pod("a", time.Hour, 30*time.Second, corev1.ConditionFalse), made, "pod web/a-0 became not ready 30s before"},
		"since":               {pod("a", time.Hour, -4*time.Second, corev1.ConditionTrue), made, "pod web/a-0 became ready 4s after"},
		"ends":                {ending, made, "pod web/a-0 was to end 5s after"},
		"of another":          {pod("b", time.Second, time.Second, corev1.ConditionTrue), made, ""},
		"the time is unknown": {pod("a", time.Second, time.Second, corev1.ConditionTrue), time.Time{}, ""},
	} {
		im := &importing{b: &bundle.Bundle{Manifest: &bundle.Manifest{Made: c.made}}, pods: []kubePod{c.pod}}
		if got := im.moving(s); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
