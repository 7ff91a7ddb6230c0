package known

import (
	"encoding/json"
	"testing"
	"testing/fstest"
	"time"
)

// TestOSV compares a whole record.
func TestOSV(t *testing.T) {
	r, err := LoadFS(fstest.MapFS{"0007-a.yaml": {Data: []byte(`id: 7
title: A title
sources:
  - {url: "https://github.com/o/n/issues/1", who: reporter, says: It is so.}
  - {url: "https://github.com/o/n/issues/1", who: maintainer, says: It is.}
  - {url: "https://github.com/o/n/pull/2", who: fix, says: Not now.}
  - {url: "https://example.com/page", who: docs, says: It was.}
affected:
  - {component: calico, ranges: [{introduced: "0", fixed: "3.19.4"}, {introduced: "3.20.0", last-affected: "3.20.2"}]}
  - {component: kube-proxy}
windows: [{build: 17763, introduced: "0", fixed: "1432"}, {build: 20348}]
symptoms: {words: It does not work.}
cause: A cause.
certainty: acknowledged
simulated: none
`)}}, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := r.Entries[0].OSV(time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC))
	if o.DatabaseSpecific.Entry != r.Entries[0] {
		t.Error("the record does not hold the entry")
	}
	o.DatabaseSpecific.Entry = nil
	got, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "schema_version": "1.6.0",
 "id": "WINLAB-0007",
 "modified": "2026-11-27T00:00:00Z",
 "summary": "A title",
 "details": "It does not work.\n\nCause: A cause.",
 "affected": [
  {
   "package": {
    "ecosystem": "winlab",
    "name": "calico"
   },
   "ranges": [
    {
     "type": "ECOSYSTEM",
     "events": [
      {
       "introduced": "0"
      },
      {
       "fixed": "3.19.4"
      }
     ]
    },
    {
     "type": "ECOSYSTEM",
     "events": [
      {
       "introduced": "3.20.0"
      },
      {
       "last_affected": "3.20.2"
      }
     ]
    }
   ]
  },
  {
   "package": {
    "ecosystem": "winlab",
    "name": "kube-proxy"
   },
   "ranges": [
    {
     "type": "ECOSYSTEM",
     "events": [
      {
       "introduced": "0"
      }
     ]
    }
   ]
  },
  {
   "package": {
    "ecosystem": "winlab",
    "name": "windows-build"
   },
   "ranges": [
    {
     "type": "ECOSYSTEM",
     "events": [
      {
       "introduced": "10.0.17763.0"
      },
      {
       "fixed": "10.0.17763.1432"
      }
     ]
    },
    {
     "type": "ECOSYSTEM",
     "events": [
      {
       "introduced": "10.0.20348.0"
      },
      {
       "fixed": "10.0.20349.0"
      }
     ]
    }
   ]
  }
 ],
 "references": [
  {
   "type": "REPORT",
   "url": "https://github.com/o/n/issues/1"
  },
  {
   "type": "FIX",
   "url": "https://github.com/o/n/pull/2"
  },
  {
   "type": "ARTICLE",
   "url": "https://example.com/page"
  }
 ],
 "database_specific": {
  "together": true,
  "entry": null
 }
}`
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
}

// TestOSVOfRegister wants what the schema requires of each record.
func TestOSVOfRegister(t *testing.T) {
	r := Load()
	for _, e := range r.Entries {
		o := e.OSV(time.Now())
		if o.Summary == "" || o.Details == "" || len(o.Affected) == 0 || len(o.References) == 0 {
			t.Errorf("%s: the record lacks a part that readers expect", e.File())
		}
		if _, err := json.Marshal(o); err != nil {
			t.Errorf("%s: %v", e.File(), err)
		}
	}
}
