// Package search finds known issues by words, codes and lines of logs. The ranking is that of
// SQLite's full-text index (BM25, with word stems), which is built in memory when it is asked.
//
// It must not know a cluster: package consult decides which entries can be somebody's.
package search

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/winlab-dev/winlab/conformance/known"
)

// Hit is an entry that was found. A higher score is a better match; scores of two searches do
// not compare.
type Hit struct {
	Entry *known.Entry
	Score float64
}

// columns are the texts of an entry that are searched, with their weight: what a person would
// paste counts more than what explains it.
var columns = []struct {
	name   string
	weight float64
	text   func(e *known.Entry) []string
}{
	{"title", 4, func(e *known.Entry) []string { return []string{e.Title} }},
	{"words", 4, func(e *known.Entry) []string { return []string{e.Symptoms.Words} }},
	{"logs", 4, func(e *known.Entry) (all []string) {
		for _, l := range e.Symptoms.Logs {
			all = append(all, l.Program, l.Text)
		}
		return all
	}},
	{"codes", 8, func(e *known.Entry) []string { return e.Symptoms.Codes }},
	{"events", 4, func(e *known.Entry) []string { return e.Symptoms.Events }},
	{"state", 3, func(e *known.Entry) []string { return e.Symptoms.State }},
	{"about", 3, func(e *known.Entry) []string {
		all := slices.Concat(e.Networks, e.Environments)
		for _, a := range e.Affected {
			all = append(append(all, a.Component), a.Options...)
		}
		for _, b := range e.Windows {
			all = append(all, b.Update, strconv.Itoa(b.Build))
		}
		return all
	}},
	{"cause", 1, func(e *known.Entry) []string { return []string{e.Cause, e.Fix, e.Workaround} }},
	{"sources", 1, func(e *known.Entry) (all []string) {
		for _, s := range e.Sources {
			all = append(all, s.Says, s.URL)
		}
		return all
	}},
}

// Index is a full-text index of entries in memory. It is not safe for concurrent use.
type Index struct {
	db      *sql.DB
	entries []*known.Entry
}

// New fills an index, which must be closed. The error is the context's, or SQLite's.
func New(ctx context.Context, entries []*known.Entry) (*Index, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	if err := fill(ctx, db, entries); err != nil {
		db.Close()
		return nil, fmt.Errorf("the index of known issues: %w", err)
	}
	return &Index{db, entries}, nil
}

// Close frees the index.
func (x *Index) Close() error { return x.db.Close() }

// Find returns the entries that match a text best, at most limit of them, the best first. The
// text is words, a code or lines that somebody pasted; an entry that shares no word with it is
// not found. The error is the context's, or SQLite's.
func (x *Index) Find(ctx context.Context, text string, limit int) ([]Hit, error) {
	match := query(text)
	if match == "" {
		return nil, nil
	}
	weights := make([]string, len(columns))
	for i, c := range columns {
		weights[i] = strconv.FormatFloat(c.weight, 'g', -1, 64)
	}
	rows, err := x.db.QueryContext(ctx, "SELECT rowid, -bm25(entry, "+strings.Join(weights, ", ")+
		") AS score FROM entry WHERE entry MATCH ? ORDER BY score DESC, rowid LIMIT ?", match, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var hits []Hit
	for rows.Next() {
		var at int
		var h Hit
		if err := rows.Scan(&at, &h.Score); err != nil {
			return nil, err
		}
		h.Entry = x.entries[at-1]
		hits = append(hits, h)
	}
	return hits, rows.Err()
}

// fill makes the index. The row of entries[i] is i+1.
func fill(ctx context.Context, db *sql.DB, entries []*known.Entry) error {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	if _, err := db.ExecContext(ctx, "CREATE VIRTUAL TABLE entry USING fts5("+strings.Join(names, ", ")+
		", tokenize = 'porter unicode61')"); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert, err := tx.PrepareContext(ctx, "INSERT INTO entry (rowid, "+strings.Join(names, ", ")+") VALUES (?"+
		strings.Repeat(", ?", len(columns))+")")
	if err != nil {
		return err
	}
	defer insert.Close()
	for i, e := range entries {
		values := []any{i + 1}
		for _, c := range columns {
			values = append(values, strings.Join(c.text(e), "\n"))
		}
		if _, err := insert.ExecContext(ctx, values...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// maxWords bounds a query: of a long paste the first words that differ are asked for.
const maxWords = 300

// query is a text as a query of FTS5: any of its words. A code is asked for in every spelling.
func query(text string) string {
	var terms []string
	add := func(w string) {
		if w = `"` + w + `"`; !slices.Contains(terms, w) && len(terms) < maxWords {
			terms = append(terms, w)
		}
	}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) < 2 {
			continue
		}
		add(w)
		if code, ok := hresult(w); ok {
			add(code)
		}
	}
	return strings.Join(terms, " OR ")
}

// hresult is the hexadecimal spelling of an error of Windows that was written as a decimal
// number: 2151350279 and -2143617017 (without its sign) are 0x803b0007.
func hresult(w string) (string, bool) {
	n, err := strconv.ParseUint(w, 10, 32)
	if err != nil || len(w) < 10 {
		return "", false
	}
	if n < 1<<31 {
		n = 1<<32 - n
	}
	return fmt.Sprintf("0x%08x", n), true
}
