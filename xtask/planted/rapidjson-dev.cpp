// Reads, changes, checks and writes JSON.
#include <rapidjson/document.h>
#include <rapidjson/pointer.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/schema.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

using namespace rapidjson;

static const char *TEXT = R"({"name": "a \u00e9\n\"quoted\" text", "numbers": [1, -2, 3.25, 1e10, 18446744073709551615],
    "nested": {"list": [[], [true, false, null], {"deep": {"deeper": [1, 2, {"last": "x"}]}}]}, "empty": {}})";

template <typename Out> static size_t write(const Document &document) {
    StringBuffer buffer;
    Out writer(buffer);
    document.Accept(writer);
    return buffer.GetSize();
}

static size_t work() {
    Document document;
    document.Parse(TEXT);
    Document copy;
    copy.CopyFrom(document, copy.GetAllocator());
    std::string inner(TEXT);
    Document in_situ;
    in_situ.ParseInsitu(inner.data());
    auto &allocator = document.GetAllocator();
    Value list(kArrayType);
    for (int at = 0; at < 20; at++)
        list.PushBack(at, allocator);
    document.AddMember("list", list, allocator);
    document["name"].SetString(std::string("other"), allocator);
    document.RemoveMember("empty");
    Pointer("/nested/more/0").Set(document, 7);
    Pointer("/nested/list/1").Erase(document);
    Document schema;
    schema.Parse(R"({"type": "object", "required": ["name"], "properties": {"numbers": {"type": "array", "items": {"type": "number"}, "maxItems": 3}, "name": {"type": "string", "pattern": "^o.h+er$"}}})");
    SchemaDocument compiled(schema);
    SchemaValidator validator(compiled);
    size_t sum = document.Accept(validator);
    if (!validator.IsValid()) {
        StringBuffer where;
        validator.GetInvalidDocumentPointer().StringifyUriFragment(where);
        sum += where.GetSize();
    }
    Document broken;
    sum += broken.Parse("{\"a\": [1, 2").GetErrorOffset();
    sum += write<Writer<StringBuffer>>(document) + write<PrettyWriter<StringBuffer>>(copy);
    return sum + (copy == in_situ);
}

int main() {
    std::printf("%zu\n", work());
    planted::measure(10, [] {
        size_t sum = work();
        planted::keep(&sum);
    });
}
