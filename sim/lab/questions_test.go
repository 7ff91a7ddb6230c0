package lab_test

import (
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Every question that no source decides can be pinned in a lab, with the values
// that the code knows, and every parameter that says it is open is a question, or a fact that
// was not observed.
func TestQuestionsAreParameters(t *testing.T) {
	params := map[string]labfile.Param{}
	for _, p := range labfile.Params() {
		params[p.Name] = p
		if p.Open && p.Fact == (evidence.QuestionOf(p.Name) != nil) {
			t.Errorf("parameter %s is open: it must be either a question or a fact", p.Name)
		}
		if p.Fact && !p.Open {
			t.Errorf("parameter %s is a fact, and not open", p.Name)
		}
	}
	for _, q := range evidence.Questions() {
		p, ok := params[q.Param]
		if !ok || !p.Open || !slices.Equal(p.Values, q.Values()) {
			t.Errorf("question %s with the values %v: the parameter is %+v", q.Param, q.Values(), p)
		}
	}
}
