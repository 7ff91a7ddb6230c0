package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"up":                               "write winlab-cluster up LAB",
		"up no-such.yaml":                  "no-such.yaml",
		"status --name no-such":            "no-such is not up",
		"status -o yaml":                   "write text or json",
		"logs a b":                         "accepts at most 1 arg",
		"down no-such":                     "no-such is not up",
		"down NO":                          "lower-case letters",
		"kill":                             "write winlab-cluster kill PROGRAM",
		"stop kubelet/win1 --name no-such": "no-such is not up",
		"up ../../cluster/testdata/lab.yaml --kubernetes 1.5":   "1.37.0",
		"up ../../cluster/testdata/lab.yaml --windows 10.0.1.1": "10.0.1.1",
	} {
		var out bytes.Buffer
		c := command()
		c.SetArgs(strings.Fields(line))
		c.SetOut(&out)
		c.SetErr(&out)
		if code := run(context.Background(), c); code != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: code %d, %s", line, code, out.String())
		}
	}
}
