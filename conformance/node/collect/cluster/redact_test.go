package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRedact: values that may be secrets go; what decides about packets stays, letter by letter.
func TestRedact(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		count    int
	}{
		"variables": {
			`{"spec": {"containers": [{"name": "c", "env": [{"name": "PW", "value": "hunter2"}, {"name": "HTTPS_PROXY", "value": "http://me:pw@proxy:3128"}, {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}]}], "initContainers": [{"env": [{"name": "A", "value": "b"}]}]}}`,
			`{"spec": {"containers": [{"name": "c", "env": [{"name": "PW", "value": "REDACTED"}, {"name": "HTTPS_PROXY", "value": "http://REDACTED@proxy:3128"}, {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}]}], "initContainers": [{"env": [{"name": "A", "value": "REDACTED"}]}]}}`, 3},
		"arguments": {
			`{"spec": {"containers": [{"command": ["app", "--token", "abc", "--token-file", "/var/t", "--port", "80"], "args": ["--password=x", "-c", "curl -H 'Authorization: Bearer abcdefghij'"]}]}}`,
			`{"spec": {"containers": [{"command": ["app", "--token", "REDACTED", "--token-file", "/var/t", "--port", "80"], "args": ["--password=REDACTED", "-c", "curl -H 'Authorization: Bearer REDACTED'"]}]}}`, 3},
		"annotations": {
			`{"metadata": {"name": "p", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"spec\": 1}", "example.com/token": "t", "a": "b", "name": "password=x"}}}`,
			`{"metadata": {"name": "p", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "REDACTED", "example.com/token": "REDACTED", "a": "b", "name": "password=REDACTED"}}}`, 3},
		"what is chosen by": {
			`{"metadata": {"labels": {"auth": "on", "token": "abcdef.0123456789abcdef"}}, "spec": {"selector": {"auth": "on"}, "podSelector": {"matchLabels": {"secret": "yes"}}, "nodeName": "abcdef.0123456789abcdef"}}`,
			`{"metadata": {"labels": {"auth": "on", "token": "abcdef.0123456789abcdef"}}, "spec": {"selector": {"auth": "on"}, "podSelector": {"matchLabels": {"secret": "yes"}}, "nodeName": "abcdef.0123456789abcdef"}}`, 0},
		"probes": {
			`{"spec": {"containers": [{"livenessProbe": {"httpGet": {"path": "/", "port": 80, "httpHeaders": [{"name": "X-Key", "value": "v"}]}}, "lifecycle": {"preStop": {"exec": {"command": ["x", "--password", "y"]}}}}]}}`,
			`{"spec": {"containers": [{"livenessProbe": {"httpGet": {"path": "/", "port": 80, "httpHeaders": [{"name": "X-Key", "value": "REDACTED"}]}}, "lifecycle": {"preStop": {"exec": {"command": ["x", "--password", "REDACTED"]}}}}]}}`, 2},
		"configuration": {
			`{"kind": "ConfigMap", "data": {"config.conf": "clusterCIDR: 10.244.0.0/16\ntoken: abc\n", "name": "password: x"}, "binaryData": {"a": "AAAA"}}`,
			`{"kind": "ConfigMap", "data": {"config.conf": "clusterCIDR: 10.244.0.0/16\ntoken: REDACTED\n", "name": "password: REDACTED"}, "binaryData": {"a": "REDACTED"}}`, 3},
		"volumes": {
			`{"spec": {"volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"storageAccountKey": "k", "share": "s"}}}, {"name": "w", "secret": {"secretName": "s"}}]}}`,
			`{"spec": {"volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"storageAccountKey": "REDACTED", "share": "s"}}}, {"name": "w", "secret": {"secretName": "s"}}]}}`, 1},
		"events": {`{"message": "failed: password=abc", "reason": "Failed"}`,
			`{"message": "failed: password=REDACTED", "reason": "Failed"}`, 1},
		"managed fields": {`{"metadata": {"managedFields": [{"x": 1}], "name": "a"}}`, `{"metadata": {"name": "a"}}`, 0},
		"numbers":        {`{"spec": {"big": 12345678901234567890, "f": 1e400}}`, `{"spec": {"big": 12345678901234567890, "f": 1e400}}`, 0},
		"not objects": {`{"items": null, "env": [1, "token=x"], "args": [1], "command": "c", "data": "d", "annotations": null}`,
			`{"items": null, "env": [1, "token=REDACTED"], "args": [1], "command": "c", "data": "d", "annotations": null}`, 1},
	} {
		for _, list := range []bool{false, true} {
			in, want := c.in, c.want
			if list {
				in, want = `{"kind": "List", "items": [`+in+`, {"kind": "X"}], "apiVersion": "v1"}`, `{"kind": "List", "items": [`+want+
					`, {"kind": "X"}], "apiVersion": "v1"}`
			}
			got, n, err := Redact([]byte(in))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if d := cmp.Diff(decoded(t, want), decoded(t, string(got))); d != "" || n != c.count {
				t.Errorf("%s: %d values, want %d (-want +got)\n%s", name, n, c.count, d)
			}
		}
	}
	for in, want := range map[string]string{
		"": "ends in the middle", `{"items": [{}`: "ends in the middle", "[1]": "instead of {", `{"items": {}}`: "instead of [",
		"no": "invalid character",
	} {
		if _, _, err := Redact([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

// FuzzRedact: what comes out is JSON with the same items, redacting it again takes nothing more,
// and no variable's value is left in it.
func FuzzRedact(f *testing.F) {
	f.Add(`{"items": [{"spec": {"containers": [{"env": [{"name": "A", "value": "S3CR3T-V4LU3"}]}]}}]}`)
	f.Add(`{"metadata": {"annotations": {"a": "token=1"}}, "data": {"x": "password: y"}}`)
	f.Add(`{"spec": {"args": ["--token", "x", 1], "command": ["a", "--password", "b"]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		out, _, err := Redact([]byte(text))
		if err != nil {
			return
		}
		var before, after map[string]any
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		again, n, err := Redact(out)
		if err != nil || n != 0 || string(again) != string(out) {
			t.Errorf("once more: %v, %d\n%s\n%s", err, n, out, again)
		}
		if json.Unmarshal([]byte(text), &before) == nil {
			a, _ := before["items"].([]any)
			b, _ := after["items"].([]any)
			if len(a) != len(b) {
				t.Errorf("%d items of %d", len(b), len(a))
			}
		}
		var values func(v any)
		values = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				for k, x := range v {
					if list, ok := x.([]any); ok && k == "env" {
						for _, e := range list {
							if m, ok := e.(map[string]any); ok && m["value"] == "S3CR3T-V4LU3" {
								t.Errorf("a variable's value is left: %s", out)
							}
						}
					}
					if !identity[k] {
						values(x)
					}
				}
			case []any:
				for _, x := range v {
					values(x)
				}
			}
		}
		values(after)
	})
}
