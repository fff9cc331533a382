// {{ name }}: printed by genrw for {{ target }}, {{ groups }} workgroup{{ "s" if groups != 1 }} of {{ block }}
{%- if program %}
//
{%- for line in program %}
//{{ " " ~ line if line }}
{%- endfor %}
{%- endif %}
#include "gen.hpp"
{% for text in devices %}
{{ text }}
{% endfor -%}
{% for text in structs %}
{{ text }}
{% endfor -%}
{% for table in tables %}
GEN_CONSTANT {{ table.type }} {{ table.name }}[] = { {{- table.elements -}} };
{% endfor -%}
{% if members is not none %}
struct {{ name }}_lanes {
{%- for member in members %}
    {{ member }}
{%- endfor %}
};
{% endif %}
GEN_KERNEL{{ "_RESIDENT" if resident }}({{ block }}{{ ", " ~ resident if resident }})
{{ name }}({{ parameters }})
{
{%- if waits %}
    gen::await_earlier_kernels();
{%- endif %}
{{ body }}
}
