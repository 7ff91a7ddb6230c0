package html

import (
	"testing"

	"github.com/winlab-dev/winlab/reports/result"
)

// TestScope has every form in which the ledger writes a range.
func TestScope(t *testing.T) {
	var settings []result.Setting
	for _, v := range []string{"1.5", "1.14", "1.19", "1.20", "1.36"} {
		settings = append(settings, result.Setting{Kubernetes: v, Network: "overlay", Design: "overlay-win-overlay"},
			result.Setting{Kubernetes: v, Network: "l2bridge", Design: "l2bridge-azure-cni"})
	}
	s := newScoper(&result.Document{Settings: settings})
	for where, want := range map[string]scope{
		"everywhere":                                    {},
		"Kubernetes 1.14":                               {V: "1.14"},
		"Kubernetes 1.14 to 1.20":                       {V: "1.14 1.19 1.20"},
		"Kubernetes 1.5 or 1.14":                        {V: "1.5 1.14"},
		"Kubernetes 1.5 or 1.19 and later":              {V: "1.5 1.19 1.20 1.36"},
		"Kubernetes after 1.20":                         {V: "1.36"},
		"Kubernetes after 1.14 and up to 1.20":          {V: "1.19 1.20"},
		"Kubernetes up to 1.19":                         {V: "1.5 1.14 1.19"},
		"Kubernetes before 1.19":                        {V: "1.5 1.14"},
		"Kubernetes from 1.14 and before 1.20, overlay": {V: "1.14 1.19", N: "n:overlay"},
		"Kubernetes 1.5 and later":                      {},
		"Kubernetes 1.21 to 1.30":                       {V: nowhere},
		"Kubernetes 1.14 to 1.20, Windows build 10.0.19041 and later, overlay or l2bridge": {V: "1.14 1.19 1.20", N: "n:overlay n:l2bridge"},
		"plugin version before 0.12.0, l2bridge-azure-cni":                                 {N: "d:l2bridge-azure-cni"},
		"win-bridge, win-overlay or flannel":                                               {},
		"Kubernetes >=1.x":                                                                 {},
	} {
		if got := s.parseScope(where); got != want {
			t.Errorf("%s: %+v, want %+v", where, got, want)
		}
	}
}
