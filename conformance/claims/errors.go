package claims

import "github.com/winlab-dev/winlab/internal/strict"

// Mistake is one thing that is wrong with the ledger, Mistakes all that was
// found in the order of files and lines.
type (
	Mistake  = strict.Mistake
	Mistakes = strict.Mistakes
)

// pos is where something is in its file.
type pos struct{ line, column int }
