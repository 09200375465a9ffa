"""Methods, including those that the interpreter calls implicitly."""

from device import take
from registry import site


class Thing:
    def method(self):
        take("method")  # site method: Thing.method < methods@method < main

    @classmethod
    def class_method(cls):
        take("class_method")  # site class_method: Thing.class_method < methods@class_method < main

    @staticmethod
    def static_method():
        take("static_method")  # site static_method: Thing.static_method < methods@static < main

    @property
    def size(self):
        return take("property")  # site property: Thing.size < methods@property < main

    @size.setter
    def size(self, _):
        take("setter")  # site setter: Thing.size < methods@setter < main

    def __getattr__(self, name):
        return take("getattr")  # site getattr: Thing.__getattr__ < methods@getattr < main

    def __getitem__(self, _):
        return take("getitem")  # site getitem: Thing.__getitem__ < methods@getitem < main

    def __add__(self, _):
        return take("add")  # site add: Thing.__add__ < methods@add < main

    def __call__(self):
        return take("call")  # site call: Thing.__call__ < methods@call < main

    def __len__(self):
        take("len")  # site len: Thing.__len__ < methods@len < main
        return 0

    def __contains__(self, _):
        return take("contains")  # site contains: Thing.__contains__ < methods@contains < main

    def __iter__(self):
        take("iter")  # site iter: Thing.__iter__ < methods@iter < main
        return iter(())

    def __str__(self):
        take("str")  # site str: Thing.__str__ < methods@str < main
        return ""

    def __lt__(self, _):
        return take("lt")  # site lt: Thing.__lt__ < methods@lt < main


@site
def methods():
    thing = Thing()
    thing.method()  # @method
    thing.class_method()  # @class_method
    thing.static_method()  # @static
    thing.size  # @property
    thing.size = 1  # @setter
    thing.anything  # @getattr
    thing[0]  # @getitem
    thing + 1  # @add
    thing()  # @call
    len(thing)  # @len
    1 in thing  # @contains
    for _ in thing:  # @iter
        pass
    f"{thing}"  # @str
    thing < 1  # @lt


class Base:
    def __new__(cls):
        take("new")  # site new: Base.__new__ < instances@instance < main
        return super().__new__(cls)

    def __init__(self):
        take("init")  # site init: Base.__init__ < Derived.__init__@super
        # < instances@instance < main


class Derived(Base):
    def __init__(self):
        super().__init__()  # @super


@site
def instances():
    Derived()  # @instance


class Meta(type):
    def __call__(cls):
        take("meta_call")  # site meta_call: Meta.__call__ < classes_at_work@meta_call < main
        return super().__call__()


class Announced:
    def __init_subclass__(cls):
        take("subclass")  # site subclass: Announced.__init_subclass__
        # < classes_at_work@subclass < main


@site
def classes_at_work():
    class WithMeta(metaclass=Meta):  # @class_statement
        take("class_body")  # site class_body: classes_at_work.<locals>.WithMeta
        # < classes_at_work@class_statement < main

    WithMeta()  # @meta_call

    class Later(Announced):  # @subclass
        pass


class Described:
    def __get__(self, instance, owner):
        return take("descriptor")  # site descriptor: Described.__get__ < descriptors@get < main

    def __set_name__(self, owner, name):
        take("set_name")  # site set_name: Described.__set_name__ < descriptors@set_name < main


@site
def descriptors():
    class Holder:  # @set_name
        value = Described()

    Holder().value  # @get
