package evidence

import (
	"fmt"
	"slices"
	"strings"
)

// Question is a behaviour for which no source says what every system does: it depends
// on a setting that is not reported, on a build, or on something that is not public.
// The simulator does not answer it with a default. A flow that meets it is followed
// once for every answer, and its verdict says which answer decides.
type Question struct {
	// Param is the lab parameter that pins the answer. It is also the
	// question's name.
	Param string
	// Answers are the possible ones, at least two. Where only one can be
	// followed, in a replay, it is the first.
	Answers []Answer
	// Fact is what is known.
	Fact *Fact
}

// Answer is one possible answer to a question.
type Answer struct {
	// Value is how a lab writes it.
	Value string
	// Means completes a sentence: "delivered if MEANS".
	Means string
}

// NewQuestion registers a question and the fact that says what is known of it,
// and returns the question. The fact's grade is Unknown unless sources state
// that systems differ. It panics on fewer than two answers or on a parameter
// that another question has.
func NewQuestion(param string, fact *Fact, answers ...Answer) *Question {
	mu.Lock()
	defer mu.Unlock()
	if len(answers) < 2 || fact == nil || fact.Param != param || questions[param] != nil {
		panic(fmt.Sprintf("evidence: question %q needs a fact with that parameter, two answers and a name of its own", param))
	}
	q := &Question{Param: param, Answers: answers, Fact: fact}
	questions[param] = q
	return q
}

var questions = map[string]*Question{}

// Questions returns every registered question, sorted by parameter.
func Questions() []*Question {
	loaded()
	mu.Lock()
	defer mu.Unlock()
	all := make([]*Question, 0, len(questions))
	for _, q := range questions {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *Question) int { return strings.Compare(a.Param, b.Param) })
	return all
}

// QuestionOf returns the question that a parameter pins, or nil.
func QuestionOf(param string) *Question {
	loaded()
	mu.Lock()
	defer mu.Unlock()
	return questions[param]
}

// Values lists the answers as a lab writes them.
func (q *Question) Values() []string {
	var vs []string
	for _, a := range q.Answers {
		vs = append(vs, a.Value)
	}
	return vs
}
