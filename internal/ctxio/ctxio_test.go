package ctxio

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReaderReadsTheSame(t *testing.T) {
	if err := iotest.TestReader(Reader(t.Context(), iotest.HalfReader(strings.NewReader("some text"))), []byte("some text")); err != nil {
		t.Error(err)
	}
}

func TestReaderEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent, w := io.Pipe()
	defer w.Close()
	r := Reader(ctx, silent)
	done := make(chan error)
	go func() {
		_, err := io.ReadAll(r)
		done <- err
	}()
	if _, err := w.Write([]byte("x")); err != nil { // now the reader waits for more
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a read that was blocked ended with %v", err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a read after the end gave %v", err)
	}
}
