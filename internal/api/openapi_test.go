package api

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

type schema struct {
	Ref                  string            `yaml:"$ref"`
	Type                 string            `yaml:"type"`
	Properties           map[string]schema `yaml:"properties"`
	Items                *schema           `yaml:"items"`
	OneOf                []schema          `yaml:"oneOf"`
	AdditionalProperties *schema           `yaml:"additionalProperties"`
}

type document struct {
	Paths      map[string]map[string]any `yaml:"paths"`
	Components struct {
		Schemas map[string]schema `yaml:"schemas"`
	} `yaml:"components"`
}

func openAPI(t *testing.T) document {
	t.Helper()
	data, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := yaml.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Every route of the code is in the document, and no other.
func TestOpenAPIRoutes(t *testing.T) {
	var described, served []string
	for path, methods := range openAPI(t).Paths {
		for method := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	for _, r := range routes(nil) {
		served = append(served, r.method+" "+r.path)
	}
	slices.Sort(described)
	slices.Sort(served)
	if diff := cmp.Diff(described, served); diff != "" {
		t.Error(diff)
	}
}

// Every JSON field of the code is in the document with its type, and no other.
func TestOpenAPIFields(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, v := range []any{Status{}, Exit{}, Config{}, Class{}, CPU{}, Boosts{}, Answers{}, Function{}, Frequency{}, Explanation{}, Thread{}, Giver{}, Link{}, Calls{}, Classes{}, Reload{}, Fault{}, Error{}} {
		types[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	schemas := openAPI(t).Components.Schemas
	for name := range schemas {
		if types[name] == nil {
			t.Errorf("schema %s: no such type", name)
		}
	}
	for name, typ := range types {
		described, is := map[string]string{}, map[string]string{}
		for field, s := range schemas[name].Properties {
			described[field] = s.form()
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag == "" {
				t.Errorf("%s.%s: no JSON name", name, f.Name)
			}
			if tag != "-" {
				is[tag] = form(f.Type)
			}
		}
		if diff := cmp.Diff(described, is); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// form writes a schema as form of a Go type would.
func (s schema) form() string {
	switch {
	case s.Ref != "":
		return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	case len(s.OneOf) == 2:
		return "null or " + s.OneOf[0].form()
	case s.Items != nil:
		return "list of " + s.Items.form()
	case s.AdditionalProperties != nil:
		return "map of " + s.AdditionalProperties.form()
	}
	return s.Type
}

func form(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return "null or " + form(t.Elem())
	case reflect.Slice:
		return "list of " + form(t.Elem())
	case reflect.Map:
		return "map of " + form(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	case reflect.Struct:
		if t.Name() == "Time" {
			return "string"
		}
		return t.Name()
	}
	return "integer"
}
