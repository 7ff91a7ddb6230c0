package wine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// guardScript waits until its input ends: the caller closes it, or has died. Then it
// ends the Wine server of the prefix and with it all programs in it, kills what
// still runs, and removes the folders that it is given. Wine's own processes leave
// their parent's process group, so they are found by the prefix in their
// environment. $1 prefix, $2 wineserver, $3 the server's folder of sockets.
const guardScript = `
trap '' HUP INT TERM
left() { grep -lzxF -e "WINEPREFIX=$1" /proc/[0-9]*/environ 2>/dev/null | sed 's|^/proc/||; s|/environ$||'; }
read -r order
n=0
while :; do
  WINEPREFIX=$1 "$2" -k >/dev/null 2>&1
  pids=$(left "$1")
  [ -n "$pids" ] || break
  n=$((n + 1))
  if [ "$n" -gt 10 ]; then kill -9 $pids 2>/dev/null; fi
  if [ "$n" -gt 100 ]; then echo "these processes do not end: $pids" >&2; exit 1; fi
  sleep 0.05
done
sockets=$3
if [ -f "$1/wineserver" ]; then # Debian's: /tmp/wine-XXXXXX, named by this file
  name=$(cat "$1/wineserver" 2>/dev/null)
  case $name in */*) ;; wine-??????) sockets=/tmp/$name ;; esac
  rm -f -- "$1/wineserver"
fi
if [ -n "$sockets" ]; then rm -rf -- "$sockets"; fi
if [ "$order" != keep ]; then
  rm -rf -- "$1"
  # Of the run nothing is left but logs, if there are any.
  rmdir -- "${1%/*}/logs" "${1%/*}" 2>/dev/null
fi
exit 0
`

// guard is the process that cleans up after a prefix.
type guard struct {
	once  sync.Once
	err   error
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  strings.Builder
}

// guard starts the guard of a prefix that exists.
func (w *Wine) guard(prefix string) (*guard, error) {
	g := &guard{}
	g.cmd = exec.Command("/bin/sh", "-c", guardScript, "winlab-wine-guard", prefix, w.server, serverDir(prefix))
	// Not WINEPREFIX: the guard must not find itself as a program of the prefix.
	g.cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	g.cmd.Dir = filepath.Dir(prefix)
	g.cmd.Stderr = &g.said
	ownSession(g.cmd) // what ends the caller's group must not end the guard
	var err error
	if g.stdin, err = g.cmd.StdinPipe(); err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("the guard of a Wine prefix does not start: %w", err)
	}
	return g, nil
}

// release makes the guard do its work and waits for that. remove tells it to remove
// the prefix, as it does when the caller dies.
func (g *guard) release(remove bool) error {
	g.once.Do(func() {
		if !remove {
			_, g.err = io.WriteString(g.stdin, "keep\n")
		}
		g.err = errors.Join(g.err, g.stdin.Close())
		done := make(chan error, 1)
		go func() { done <- g.cmd.Wait() }()
		select {
		case err := <-done:
			if err != nil {
				g.err = errors.Join(g.err, fmt.Errorf("processes of a Wine prefix were left: %w: %s", err, strings.TrimSpace(g.said.String())))
			}
		case <-time.After(time.Minute):
			g.err = errors.Join(g.err, errors.New("the guard of a Wine prefix does not end"), g.cmd.Process.Kill())
		}
	})
	return g.err
}

// serverDir is where the Wine server of a prefix keeps its socket (server/request.c
// of Wine; Debian's differs, see the script); "" when that cannot be known.
func serverDir(prefix string) string {
	dev, ino, ok := fileID(prefix)
	if !ok {
		return ""
	}
	return fmt.Sprintf("/tmp/.wine-%d/server-%x-%x", os.Getuid(), dev, ino)
}
