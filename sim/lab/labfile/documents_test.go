package labfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// FuzzDocuments holds what is taken whole against Kubernetes' reader.
func FuzzDocuments(f *testing.F) {
	for _, s := range []string{"", "\n", "a: b", "a: b\n", "{\"a\": 1}\n\n", "---", "---\na: b\n---\n", "a\n---\nb", "a\n--- # more\nb\n",
		"a\n---b\n", " ---\na", "a: |\n  ---\n", "a\r\nb\r", "\r", "\xef\xbb\xbf---\na", "a\x00b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(next func() ([]byte, error)) (docs []string, failed bool) {
			for {
				doc, err := next()
				if err != nil {
					return docs, !errors.Is(err, io.EOF)
				}
				docs = append(docs, string(doc))
			}
		}
		want, wantFailed := read(yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))).Read)
		got, failed := read(documents(bytes.Clone(data)))
		if len(got) != len(want) || failed != wantFailed {
			t.Fatalf("%q: %q %v, want %q %v", data, got, failed, want, wantFailed)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%q: document %d is %q, want %q", data, i, got[i], want[i])
			}
		}
	})
}
