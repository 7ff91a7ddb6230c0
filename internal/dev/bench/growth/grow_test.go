package growth

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/winlab-dev/winlab/sim/lab/labtest"
)

// module is this module, in the names of files that ran.
const module = "github.com/winlab-dev/winlab/"

// Phases are what is done with a lab, in order, and what each may grow with.
var phases = []phase{
	{"read", limitOfAll},
	{"build", limitOfAll},
	{"first trace", limitOfAll},
	{"trace", limitOfPath},
	{"first to a Service", limitOfAll},
	{"trace to a Service", limitOfPath},
	{"reach of one flow", limitOfAll},
	{"taken away", limitOfAll},
}

// Limits of exponents: what may grow with the cluster, and what only with the path of a packet.
const (
	limitOfAll  = 1.1
	limitOfPath = 0.05
	// limitOfFunction is for a single one: sorting n things takes n log n comparisons, the exponent
	// of which is 1.2 at these sizes.
	limitOfFunction = 1.3
	// least is the share of a phase's work below which no function is looked at.
	least = 0.001
	// ofPath is by how much of the whole a function's part of a trace may grow with the cluster.
	ofPath = 0.02
)

type phase struct {
	name  string
	limit float64
}

// Program is the program that is counted.
type Program struct {
	root, path string
	functions  map[string][]function // by file
}

// function is where a function of a file stands.
type function struct {
	name       string
	first, end int // lines
}

// Build builds the program in a folder. root is that of the repository.
func Build(ctx context.Context, root, dir string) (*Program, error) {
	p := &Program{root: root, path: filepath.Join(dir, "work"), functions: map[string][]function{}}
	cmd := exec.CommandContext(ctx, "go", "build", "-cover", "-covermode=atomic",
		"-coverpkg=./sim/...,./internal/...,./conformance/...", "-o", p.path, "./internal/dev/bench/growth/work")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build -cover: %w: %s", err, out)
	}
	return p, nil
}

// Counts are how many statements ran, by phase and function.
type Counts map[string]map[string]float64

func (c Counts) total(phase string) (n float64) {
	for _, k := range c[phase] {
		n += k
	}
	return n
}

// Run does the work on a lab of a size, and says what became of its packets. dir is an empty folder
// of its own.
func (p *Program) Run(ctx context.Context, s labtest.Size, dir string) (c Counts, became string, err error) {
	file, err := labtest.Write(dir, s)
	if err != nil {
		return nil, "", err
	}
	cmd := exec.CommandContext(ctx, p.path, file, dir, "pod/"+labtest.PodName(0, 0), "pod/"+labtest.PodName(s.Nodes-1, 0), "svc/"+
		labtest.ServiceName(1))
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, "", fmt.Errorf("%w: %s", err, out)
	}
	counts := Counts{}
	for _, ph := range phases {
		text := filepath.Join(dir, "counts.txt")
		if out, err := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i", filepath.Join(dir, ph.name), "-o",
			text).CombinedOutput(); err != nil {
			return nil, "", fmt.Errorf("go tool covdata: %w: %s", err, out)
		}
		if counts[ph.name], err = p.read(text); err != nil {
			return nil, "", err
		}
	}
	return counts, string(out), nil
}

// read sums up a file of blocks: "FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT".
func (p *Program) read(path string) (map[string]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := map[string]float64{}
	in := bufio.NewScanner(f)
	for in.Scan() {
		place, rest, ok := strings.Cut(in.Text(), ":")
		if place == "mode" {
			continue
		}
		var from, to, column, statements int
		var count float64
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %g", &from, &column, &to, &column, &statements, &count); !ok || err != nil {
			return nil, fmt.Errorf("%q is not a block of coverage", in.Text())
		}
		if count == 0 {
			continue
		}
		name, err := p.function(place, from)
		if err != nil {
			return nil, err
		}
		sum[name] += float64(statements) * count
	}
	return sum, in.Err()
}

// function names the one of a file that has a line.
func (p *Program) function(file string, line int) (string, error) {
	file = strings.TrimPrefix(file, module)
	all, ok := p.functions[file]
	if !ok {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, filepath.Join(p.root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		for _, d := range tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				name := f.Name.Name
				if f.Recv != nil && len(f.Recv.List) == 1 {
					name = receiver(f.Recv.List[0].Type) + "." + name
				}
				all = append(all, function{filepath.ToSlash(filepath.Dir(file)) + " " + name, set.Position(f.Pos()).Line, set.Position(f.End()).Line})
			}
		}
		p.functions[file] = all
	}
	for _, f := range all {
		if f.first <= line && line <= f.end {
			return f.name, nil
		}
	}
	return file + ":" + strconv.Itoa(line), nil
}

func receiver(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

// Row is how the work of one phase grew.
type Row struct {
	Grown, Phase string
	By           float64
	Small, Large float64 // statements
	Limit        float64
	Steep        []Steep // the functions that grow faster than they may
}

// Steep is a function whose work grows faster than the cluster.
type Steep struct {
	Name         string
	Small, Large float64
	Exponent     float64
}

// Exponent is the power of the size with which the work grows.
func (r *Row) Exponent() float64 { return exponent(r.Small, r.Large, r.By) }

// Over reports whether it is more than it may be.
func (r *Row) Over() bool { return r.Exponent() > r.Limit || len(r.Steep) > 0 }

func exponent(small, large, by float64) float64 {
	return math.Log(max(large, 1)/max(small, 1)) / math.Log(by)
}

// begins reports whether a function that is next to nothing in the small lab did not grow, but has
// something to do in the large lab alone: it takes more than the cube to get from there to here.
// kube-proxy has nothing to complain of as long as a node has ports for all Services. The phase's
// total still counts it.
func begins(small, large, by float64) bool { return exponent(small, large, by) > 3 }

// Compare compares two labs, of which one is larger by a factor.
func Compare(grown string, by float64, small, large Counts) []Row {
	var rows []Row
	for _, ph := range phases {
		r := Row{Grown: grown, Phase: ph.name, By: by, Small: small.total(ph.name), Large: large.total(ph.name), Limit: ph.limit}
		for name, n := range large[ph.name] {
			s := small[ph.name][name]
			e := exponent(s, n, by)
			steep := e > limitOfFunction && n > least*r.Large && !begins(s, n, by)
			if ph.limit == limitOfPath {
				steep = n-s > ofPath*r.Small
			}
			if steep {
				r.Steep = append(r.Steep, Steep{name, s, n, e})
			}
		}
		slices.SortFunc(r.Steep, func(a, b Steep) int {
			return cmp.Or(cmp.Compare(b.Large, a.Large), cmp.Compare(a.Name, b.Name))
		})
		rows = append(rows, r)
	}
	return rows
}

// Print prints rows as a table, and the functions that grow too fast, and returns how many rows are
// over their limit.
func Print(w io.Writer, rows []Row) (over int, err error) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "what grows\tby\tphase\tstatements\tto\texponent\tlimit\t")
	for _, r := range rows {
		note := ""
		if r.Over() {
			over++
			note = "OVER"
		}
		fmt.Fprintf(out, "%s\t%.3g\t%s\t%.0f\t%.0f\t%.2f\t%.2f\t%s\n", r.Grown, r.By, r.Phase, r.Small, r.Large, r.Exponent(), r.Limit, note)
		for _, s := range r.Steep {
			fmt.Fprintf(out, "\t\t  %s\t%.0f\t%.0f\t%.2f\t\tOVER\n", s.Name, s.Small, s.Large, s.Exponent)
		}
	}
	return over, out.Flush()
}

// Scale is by how much labs differ, and how large the smaller one is.
type Scale struct {
	By   int
	Base labtest.Size // with Backends
}

// Small is a scale that takes seconds. The envelope of Kubernetes, 5,000 nodes with 150,000 pods and
// 10,000 Services, is [Envelope]'s larger lab.
var (
	Small    = Scale{4, labtest.Size{Nodes: 70, Pods: 20, Services: 100, Backends: 4}}
	Envelope = Scale{4, labtest.Size{Nodes: 1250, Pods: 30, Services: 2500, Backends: 15}}
)

// Grow runs labs of a scale that differ in one thing, and in several, and compares them. dir is a
// folder for them; only what grows whose name contains only is tried.
func (p *Program) Grow(ctx context.Context, dir string, s Scale, only string) ([]Row, error) {
	with := func(change func(*labtest.Size)) labtest.Size {
		x := s.Base
		change(&x)
		return x
	}
	// Each pod has a policy, so that more of them change no verdict.
	policies := func(x *labtest.Size) { x.Policies, x.Agent = x.Nodes*x.Pods/x.Backends, "calico" }
	var rows []Row
	for i, g := range []struct {
		name string
		base labtest.Size
		more func(*labtest.Size)
	}{
		{"nodes, host-gw", s.Base, func(x *labtest.Size) { x.Nodes *= s.By }},
		{"nodes, vxlan", with(func(x *labtest.Size) { x.VXLAN = true }), func(x *labtest.Size) { x.Nodes *= s.By }},
		{"pods", s.Base, func(x *labtest.Size) { x.Pods *= s.By }},
		{"Services", s.Base, func(x *labtest.Size) { x.Services *= s.By }},
		{"Services, DSR", with(func(x *labtest.Size) { x.DSR = true }), func(x *labtest.Size) { x.Services *= s.By }},
		{"policies", with(policies), func(x *labtest.Size) { x.Policies *= s.By }},
		{"pods, Services and policies", with(policies), func(x *labtest.Size) { x.Pods *= s.By; x.Services *= s.By; x.Policies *= s.By }},
		{"nodes and Services", s.Base, func(x *labtest.Size) { x.Nodes *= s.By; x.Services *= s.By }},
	} {
		if !strings.Contains(g.name, only) {
			continue
		}
		large := g.base
		g.more(&large)
		var counts [2]Counts
		var became [2]string
		for k, size := range []labtest.Size{g.base, large} {
			sub := filepath.Join(dir, fmt.Sprintf("%d-%d", i, k))
			err := os.Mkdir(sub, 0o755)
			if err == nil {
				counts[k], became[k], err = p.Run(ctx, size, sub)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", g.name, err)
			}
		}
		if became[0] != became[1] {
			return nil, fmt.Errorf("%s: packets are %sin the small lab and %sin the large one, which cannot be compared", g.name, became[0],
				became[1])
		}
		rows = append(rows, Compare(g.name, float64(s.By), counts[0], counts[1])...)
	}
	return rows, nil
}
