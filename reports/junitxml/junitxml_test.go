package junitxml

import (
	"strings"
	"testing"
)

func TestWriteCounts(t *testing.T) {
	why := &Problem{Message: "m", Type: "t", Text: "text"}
	doc := &Suites{Name: "all", Counts: Counts{Tests: 99}, Suites: []*Suite{
		{Name: "a", File: "a.yaml", Properties: &Properties{[]Property{{"k", "v"}}},
			Cases: []*Case{{Class: "c", Name: "passes", Out: "said"}, {Name: "fails", Failure: why, File: "a.yaml", Line: 3}}},
		{Name: "b", Properties: &Properties{}, Cases: []*Case{{Name: "broken", Error: why}, {Name: "left out", Skipped: why},
			{Name: "timed", Time: "0.5"}}},
		{Name: "empty"},
	}}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="all" tests="5" failures="1" errors="1" skipped="1">
 <testsuite name="a" tests="2" failures="1" errors="0" skipped="0" file="a.yaml">
  <properties>
   <property name="k" value="v"></property>
  </properties>
  <testcase classname="c" name="passes">
   <system-out>said</system-out>
  </testcase>
  <testcase classname="" name="fails" file="a.yaml" line="3">
   <failure message="m" type="t">text</failure>
  </testcase>
 </testsuite>
 <testsuite name="b" tests="3" failures="0" errors="1" skipped="1">
  <properties></properties>
  <testcase classname="" name="broken">
   <error message="m" type="t">text</error>
  </testcase>
  <testcase classname="" name="left out">
   <skipped message="m" type="t">text</skipped>
  </testcase>
  <testcase classname="" name="timed" time="0.5"></testcase>
 </testsuite>
 <testsuite name="empty" tests="0" failures="0" errors="0" skipped="0"></testsuite>
</testsuites>
`
	for range 2 { // writing it again counts from the beginning
		var b strings.Builder
		if err := doc.Write(&b); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("got\n%s", b.String())
		}
	}
}
