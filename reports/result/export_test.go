package result

import "reflect"

// TypeOfJSON is the Go type that the JSON form is written from.
func TypeOfJSON() reflect.Type { return reflect.TypeFor[wireDocument]() }
