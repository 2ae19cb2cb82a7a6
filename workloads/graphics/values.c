/* Numbers of values that arguments of type array have, by the name that says what they are. */
#include "context.h"

struct value_count { GLenum name; int count; };

static int count_of(const struct value_count *table, int entries, GLenum name)
{
    for (int i = 0; i < entries; i++)
        if (table[i].name == name) return table[i].count;
    return 0;
}
#define COUNT_OF(table, name) count_of(table, sizeof table / sizeof *table, name)

int material_values(GLenum name)
{
    static const struct value_count table[] = { { GL_AMBIENT, 4 }, { GL_DIFFUSE, 4 }, { GL_SPECULAR, 4 }, { GL_EMISSION, 4 },
        { GL_SHININESS, 1 }, { GL_AMBIENT_AND_DIFFUSE, 4 }, { GL_COLOR_INDEXES, 3 } };
    return COUNT_OF(table, name);
}

int light_values(GLenum name)
{
    static const struct value_count table[] = { { GL_AMBIENT, 4 }, { GL_DIFFUSE, 4 }, { GL_SPECULAR, 4 }, { GL_POSITION, 4 },
        { GL_SPOT_DIRECTION, 3 }, { GL_SPOT_EXPONENT, 1 }, { GL_SPOT_CUTOFF, 1 }, { GL_CONSTANT_ATTENUATION, 1 },
        { GL_LINEAR_ATTENUATION, 1 }, { GL_QUADRATIC_ATTENUATION, 1 } };
    return COUNT_OF(table, name);
}

int light_model_values(GLenum name)
{
    static const struct value_count table[] = { { GL_LIGHT_MODEL_AMBIENT, 4 }, { GL_LIGHT_MODEL_LOCAL_VIEWER, 1 },
        { GL_LIGHT_MODEL_TWO_SIDE, 1 } };
    return COUNT_OF(table, name);
}

int map_values(GLenum target)
{
    static const uint8_t counts[9] = { 4, 1, 3, 1, 2, 3, 4, 3, 4 };
    if (target >= GL_MAP1_COLOR_4 && target <= GL_MAP1_VERTEX_4) return counts[target - GL_MAP1_COLOR_4];
    if (target >= GL_MAP2_COLOR_4 && target <= GL_MAP2_VERTEX_4) return counts[target - GL_MAP2_COLOR_4];
    return 0;
}

int map_order(GLint order) { return order > 0 && order <= MAX_ORDER ? order : 0; }

int list_name_size(GLenum type)
{
    return type == GL_2_BYTES ? 2 : type == GL_3_BYTES ? 3 : type == GL_4_BYTES ? 4 : type == GL_DOUBLE ? 0 : type_size(type);
}
