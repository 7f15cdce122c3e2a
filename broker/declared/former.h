#ifndef GMB_BROKER_DECLARED_FORMER_H_
#define GMB_BROKER_DECLARED_FORMER_H_

#include "broker/declared/declared.h"

namespace gmb::broker {

// Notes in `after` what each tenant had in `before`, where its values differ. A
// tenant that is new, or was deleted, has had none.
void NoteFormer(const Declared& before, Declared* after);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DECLARED_FORMER_H_
