// Command httpd answers HTTP requests with ten bytes: the server of bench-live, the same
// in labs and beside them. It takes the address to listen on.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	s := http.Server{Addr: os.Args[1], ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "0123456789") })}
	fmt.Fprintln(os.Stderr, s.ListenAndServe())
	os.Exit(1)
}
