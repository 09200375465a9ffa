#include "analysis/advise/advise.h"
