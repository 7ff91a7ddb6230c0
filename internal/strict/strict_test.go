package strict

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

type common struct {
	Name string `yaml:"name"`
}

type document struct {
	common   `yaml:"-"`
	Common   common            `yaml:",inline"`
	Count    int               `yaml:"count"`
	Port     uint16            `yaml:"port"`
	On       *bool             `yaml:"on"`
	Parts    []common          `yaml:"parts"`
	Labels   map[string]string `yaml:"labels"`
	Anything any               `yaml:"anything"`
}

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\ncount: 3\nport: 80\non: true\nparts: [{name: b}]\nlabels: {x: y}\nanything: [1, {a: b}]": "",
		"names: a":                    `1:1: it has no field "names"; did you mean "name"?`,
		"zzz: a":                      `1:1: it has no field "zzz"; write one of anything, count, labels, name, on, parts, port`,
		"[]":                          `1:1: it is a list; write a map with the fields anything, count, labels, name, on, parts, port`,
		"count: many":                 `1:8: count is "many"; write a whole number`,
		"port: 65536":                 `1:7: port is "65536"; write a number from 0 to 65535`,
		"on: yes please":              `1:5: on is "yes please"; write true or false`,
		"name:":                       `1:6: name is empty; write a text`,
		"name: [a]":                   `1:7: name is a list; write a text`,
		"parts: {name: a}":            `1:8: parts is a map; write a list: [a, b]`,
		"parts:\n- name: a\n  nme: b": `3:3: an entry of parts has no field "nme"; did you mean "name"?`,
		"labels: [a]":                 `1:9: labels is a list; write a map`,
		"labels: {a: b, a: c}":        `1:16: field "a" is here twice; the first is on line 1`,
		"name: &x a":                  `1:7: anchors and aliases are not used here; write name out`,
		"anything: [[&x a, *x]]":      `1:19: anchors and aliases are not used here; write an entry of an entry of anything out`,
		"anything: " + strings.Repeat("[", 40) + strings.Repeat("]", 40): `1:43: an entry of`,
		"count: x\nport: y": `1:8: count is "x"; write a whole number` + "\n" + `2:7: port is "y"; write a number from 0 to 65535`,
	} {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		s := &Checker{File: "f"}
		s.Check(n.Content[0], reflect.TypeFor[document](), "it")
		got := ""
		if err := s.Found.AsError(); err != nil {
			got = strings.ReplaceAll(err.Error(), "f:", "")
		}
		if got != want && !(strings.HasSuffix(want, "an entry of") && strings.HasPrefix(got, want) &&
			strings.HasSuffix(got, "is nested too deeply")) {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestSyntaxMistake(t *testing.T) {
	var n yaml.Node
	err := yaml.Unmarshal([]byte("a: b\nc: [d\n"), &n)
	if got := SyntaxMistake("f", err).String(); got != "f:1:1: not YAML: did not find expected ',' or ']'" {
		t.Errorf("%v became %s", err, got)
	}
	if got := SyntaxMistake("f", errors.New("something else")).String(); got != "f: something else" {
		t.Error(got)
	}
}
